import { setTimeout as sleep } from 'node:timers/promises';

// A product with many customers: brings each of them to Heliograph, and follows what changes there. Every call may be repeated.

export type Customer = { id: string; name: string; wabaId: string };

/** Resolves with the body of the answer. */
export type Ask = <Body>(
  method: string,
  path: string,
  body?: object,
  headers?: Record<string, string>,
) => Promise<Body>;

const PATIENCE_MS = 120_000;

/**
 * Calls the platform API; a refusal is an error. A key has 200 writes in ten seconds: it waits for more. Where no answer came,
 * because a process was restarted, it may have been done or not: it is asked again.
 */
export function platformApi(url: string, platformKey: string): Ask {
  return async (method, path, body, headers) => {
    const request = {
      method,
      headers: {
        ...headers,
        authorization: `Bearer ${platformKey}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    };
    for (const startedAt = Date.now(); ; ) {
      const answer = await answerTo(`${url}/api/platform${path}`, request);
      if (answer.status >= 200 && answer.status <= 299) return JSON.parse(answer.text);
      const mayPass = answer.status === 429 || answer.status >= 500;
      if (!mayPass || Date.now() - startedAt > PATIENCE_MS)
        throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
      await sleep(answer.waitMs);
    }
  };
}

async function answerTo(url: string, request: RequestInit) {
  try {
    const response = await fetch(url, request);
    const waitMs = 1_000 * Number(response.headers.get('retry-after') ?? 1);
    return { status: response.status, text: await response.text(), waitMs };
  } catch (error) {
    return { status: 599, text: `no answer: ${error}`, waitMs: 250 };
  }
}

/** The customer's API key; null where an earlier call made it, and has it. */
export async function bringIn(ask: Ask, { id, name, wabaId }: Customer): Promise<string | null> {
  await ask('PUT', `/tenants/${id}`, { businessName: name });
  await ask('PUT', `/tenants/${id}/wabas/${wabaId}`, {});
  const key = { name: 'our server', scopes: ['send', 'manage_webhooks'] };
  const path = `/tenants/${id}/wabas/${wabaId}/keys/server`;
  return (await ask<{ apiKey: string | null }>('PUT', path, key)).apiKey;
}

const AT_ONCE = 8;

/** All customers, some at a time. `keep` puts an API key where it stays: no later call has it. */
export async function bringAllIn(
  ask: Ask,
  customers: readonly Customer[],
  keep: (customer: Customer, apiKey: string) => Promise<void>,
): Promise<void> {
  const rest = customers.values();
  const worker = async () => {
    for (const customer of rest) {
      const apiKey = await bringIn(ask, customer);
      if (apiKey !== null) await keep(customer, apiKey);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

/** A new API key; the one before is valid for a day, in which the servers change over. Also where an answer with a key was lost. */
export async function replaceKey(ask: Ask, { id, wabaId }: Customer): Promise<string> {
  const path = `/tenants/${id}/wabas/${wabaId}/keys/server/rotate`;
  return (await ask<{ apiKey: string }>('POST', path, { overlapHours: 24 })).apiKey;
}

type Tenant = { externalId: string | null; state: 'active' | 'suspended'; wabas: { wabaId: string }[] };

/** All tenants of the installation, as they are now. */
export async function tenantsOf(ask: Ask): Promise<Tenant[]> {
  const tenants: Tenant[] = [];
  for (let query = '?limit=100'; ; ) {
    const page = await ask<{ data: Tenant[]; nextCursor: string; hasMore: boolean }>(
      'GET',
      `/tenants${query}`,
    );
    tenants.push(...page.data);
    if (!page.hasMore) return tenants;
    query = `?limit=100&cursor=${encodeURIComponent(page.nextCursor)}`;
  }
}

export async function suspend(ask: Ask, { id }: Customer, suspendReason: string): Promise<void> {
  await ask('PATCH', `/tenants/${id}`, { state: 'suspended', suspendReason });
}

/** What the product knows of a tenant; `numbers`: those that its people connected by links. */
export type Known = {
  state: 'active' | 'suspended';
  wabas: Set<string>;
  keyIds: Set<string>;
  numbers: Set<string>;
};

/** An event of the feed, or of a hook, where `sequence` says what of a tenant was there before. */
export type Event = {
  type: string;
  sequence: number;
  tenant: { externalId: string | null } | null;
  wabaId: string | null;
  data: { keyId?: string; phoneNumberId?: string };
};

type Page = { data: Event[]; nextCursor: string; hasMore: boolean };

/** Brings what the product knows up to date; returns where to go on the next time. */
export async function follow(ask: Ask, known: Map<string, Known>, cursor: string | null): Promise<string> {
  for (let at = cursor; ; ) {
    const query = at === null ? '' : `?cursor=${encodeURIComponent(at)}`;
    const page = await ask<Page>('GET', `/operation-events${query}`);
    for (const event of page.data) note(known, event);
    at = page.nextCursor;
    if (!page.hasMore) return at;
  }
}

/** Brings what the product knows up to date by one event. */
export function note(known: Map<string, Known>, { type, tenant, wabaId, data }: Event): void {
  const id = tenant?.externalId ?? null;
  if (id === null) return;
  if (type === 'tenant.removed') {
    known.delete(id);
    return;
  }
  const one = known.get(id) ?? {
    state: 'active',
    wabas: new Set(),
    keyIds: new Set(),
    numbers: new Set(),
  };
  known.set(id, one);
  if (type === 'tenant.suspended') one.state = 'suspended';
  if (type === 'tenant.resumed') one.state = 'active';
  if (type === 'waba.saved' && wabaId !== null) one.wabas.add(wabaId);
  if (type === 'waba.removed' && wabaId !== null) one.wabas.delete(wabaId);
  if (type === 'number.connected' && data.phoneNumberId !== undefined) one.numbers.add(data.phoneNumberId);
  if (type === 'key.created' && data.keyId !== undefined) one.keyIds.add(data.keyId);
  if (type === 'key.revoked' && data.keyId !== undefined) one.keyIds.delete(data.keyId);
}
