import { beforeEach, expect } from 'vitest';
import { apiOfFile, OTHER_NUMBER, type TestApi } from '../../api/api-harness.ts';
import { newOffice, type Office, type PortalBrowser } from '../portal-browser.ts';

export let api: TestApi;

/** Of the test that runs. */
export let office: Office;

export let admin: PortalBrowser;

/** The pages of its endpoints. */
export let endpointsPath: string;

/** Adds an endpoint by the form; returns its id and its secret. */
export async function add(fields: Record<string, string> = {}): Promise<{ id: string; secret: string }> {
  await admin.get(`${endpointsPath}/new`);
  const answer = await admin.post(endpointsPath, { url: 'https://receiver.example/hook', ...fields });
  expect([answer.statusCode, answer.headers['cache-control']]).toEqual([200, 'no-store']);
  return {
    id: /endpoints\/(\d+)"/.exec(answer.body)?.[1] ?? '',
    secret: /whsec_[A-Za-z0-9+/=]+/.exec(answer.body)?.[0] ?? '',
  };
}

export async function stored(id: string): Promise<Record<string, unknown>> {
  const { rows } = await api.database.raw(
    'select e.*, h.mode from webhook_endpoints e join endpoint_health h on h.endpoint_id = e.id where id = :id',
    { id },
  );
  return rows[0];
}

export async function actions(): Promise<string[]> {
  const { rows } = await api.database.raw(
    `select action from audit_log where actor = :adminEmail and action not like 'user.%' order by id`,
    { adminEmail: office.adminEmail },
  );
  return rows
    .map(({ action }: { action: string }) => action)
    .filter((action: string) => /^(endpoint|operations)/.test(action));
}

export const MISTAKES: [Record<string, string>, string][] = [
  [{ url: 'ftp://receiver.example' }, 'https://'],
  [{ url: 'https://127.0.0.1/' }, 'not sent to'],
  [{ timeoutSeconds: 'soon' }, 'numbers only'],
  [{ timeoutSeconds: '900' }, 'whole number from'],
  [{ retrySchedule: '5, x' }, 'numbers only'],
  [{ eventTypes: 'nonsense' }, 'must be one of'],
  [{ phoneNumberIds: OTHER_NUMBER }, 'has no phone number'],
  [{ newHeaders: 'no colon' }, 'Name: value'],
  [{ newHeaders: 'Webhook-Id: 1' }, 'reserved'],
  [{ orderScope: 'whatever' }, 'must be one of'],
  [{ description: 'x'.repeat(201) }, 'at most 200'],
  [{ maxInFlight: '0' }, 'from 1 to 500'],
];

/** The tests of a file share an API without Temporal; each has an administrator of a tenant that no other knows. */
export function useEndpointBrowser(): void {
  api = apiOfFile(async () => ({
    startDelivery: async () => {
      throw new Error('Temporal is away');
    },
  }));
  beforeEach(async () => {
    office = await newOffice(api);
    admin = office.admin;
    endpointsPath = `${office.path}/endpoints`;
  });
}
