import type { Viewer } from '../../src/api/portal/access/viewer.ts';
import { type BusinessNumber, listBusinessNumbers } from '../../src/features/accounts/accounts.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import type { Customer, SandboxClient } from './sandbox-client.ts';

/** What the address says: the customer that is played, and the number that is written to. */
export type AskedChoice = { number?: string | undefined; customer?: string | undefined };

/** The chosen customer and number, and the others. */
export type ConsoleChoice = {
  number: BusinessNumber;
  numbers: readonly BusinessNumber[];
  customer: Customer;
  customers: readonly Customer[];
};

/** The chosen number and customer, or the first ones; null when the viewer has no number at all. */
export async function readChoice(
  database: Database,
  client: SandboxClient,
  viewer: Viewer,
  asked: AskedChoice,
): Promise<ConsoleChoice | null> {
  const numbers = await listBusinessNumbers(database, viewer.role === 'operator' ? null : viewer.tenantId);
  const number = numbers.find((one) => one.phoneNumberId === asked.number) ?? numbers[0];
  if (number === undefined) return null;
  const customers = await client.customers(number.wabaId);
  const customer = customers.find((one) => one.waId === asked.customer) ?? customers[0];
  return customer === undefined ? null : { number, numbers, customer, customers };
}

/** The console with this choice. */
export function consolePath(
  { number, customer }: Pick<ConsoleChoice, 'number' | 'customer'>,
  more = '',
): string {
  const query = new URLSearchParams({ number: number.phoneNumberId, customer: customer.waId });
  return `/portal/sandbox?${query}${more}`;
}

/** Whether this viewer may play: members look on. */
export function mayPlay({ role }: Pick<Viewer, 'role'>): boolean {
  return role !== 'member';
}
