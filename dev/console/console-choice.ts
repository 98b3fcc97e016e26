import type { Viewer } from '../../src/api/portal/access/viewer.ts';
import type { PhoneNumber } from '../../src/features/accounts/accounts.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { query } from '../../src/platform/postgres/sql.ts';
import type { Customer, SandboxClient } from './sandbox-client.ts';

/** What the address says: the customer that is played, and the number that is written to. */
export type AskedChoice = { number?: string | undefined; customer?: string | undefined };

type BusinessNumber = Omit<PhoneNumber, 'qualityRating'> & { wabaId: string; businessName: string };

/** A page has room for so many to choose from. */
const MAX_LISTED = 200;

/** The numbers of a viewer's tenant; of all tenants for operators. */
export async function numbersOf(
  database: Database,
  { role, tenantId }: Pick<Viewer, 'role' | 'tenantId'>,
): Promise<BusinessNumber[]> {
  return await query<BusinessNumber>(
    database,
    `select n.phone_number_id as "phoneNumberId", n.display_phone_number as "displayPhoneNumber",
            n.verified_name as "verifiedName", w.waba_id as "wabaId", t.business_name as "businessName"
       from phone_numbers n join wabas w using (waba_id) join tenants t on t.id = w.tenant_id
      where n.removed_at is null and w.removed_at is null ${role === 'operator' ? '' : 'and w.tenant_id = :tenantId'}
      order by w.tenant_id, n.phone_number_id limit ${MAX_LISTED}`,
    { tenantId },
  );
}

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
  const numbers = await numbersOf(database, viewer);
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
