import { beforeEach, expect } from 'vitest';
import { startTestApi, type TestApi, WABA } from '../../api/api-harness.ts';
import { addUser, type PortalBrowser, tenantOf } from '../portal-browser.ts';

export const PATH = `/portal/w/${WABA}/endpoints`;

export let api: TestApi;

export let admin: PortalBrowser;

/** Adds an endpoint by the form; returns its id and its secret. */
export async function add(fields: Record<string, string> = {}): Promise<{ id: string; secret: string }> {
  await admin.get(`${PATH}/new`);
  const answer = await admin.post(PATH, { url: 'https://receiver.example/hook', ...fields });
  expect([answer.statusCode, answer.headers['cache-control']]).toEqual([200, 'no-store']);
  return {
    id: /endpoints\/(\d+)"/.exec(answer.body)?.[1] ?? '',
    secret: /whsec_[A-Za-z0-9+/=]+/.exec(answer.body)?.[0] ?? '',
  };
}

export async function stored(id: string): Promise<Record<string, unknown>> {
  const { rows } = await api.database.raw('select * from webhook_endpoints where id = ?', [id]);
  return rows[0];
}

export async function actions(): Promise<string[]> {
  const { rows } = await api.database.raw(
    `select action from audit_log where actor = 'admin@store.example' and action not like 'user.%' order by id`,
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
  [{ phoneNumberIds: '800000000000221' }, 'has no phone number'],
  [{ newHeaders: 'no colon' }, 'Name: value'],
  [{ newHeaders: 'Webhook-Id: 1' }, 'reserved'],
  [{ orderScope: 'whatever' }, 'must be one of'],
  [{ description: 'x'.repeat(201) }, 'at most 200'],
  [{ maxInFlight: '0' }, 'from 1 to 500'],
];

/** Each test has an API of its own, where Temporal is away, and an administrator. */
export function useEndpointBrowser(): void {
  beforeEach(async () => {
    api = await startTestApi(async () => ({
      startDelivery: async () => {
        throw new Error('Temporal is away');
      },
    }));
    const tenantId = await tenantOf(api.database, WABA);
    admin = await addUser(api, { email: 'admin@store.example', role: 'admin', tenantId });
  });
}
