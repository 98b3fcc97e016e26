import { setTimeout as delay } from 'node:timers/promises';
import { createKey } from '../../../src/features/keys/api-keys.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import type { DrillAccount } from '../accounts.ts';
import type { Gap } from './check-restore.ts';

/** A message that a tenant sent. Null: it was not told that it was taken. */
type Sent = { text: string; takenMs: number | null };

export type Sends = {
  sent: Sent[];
  stop(): Promise<void>;
};

type Target = { ingressUrl: string; sandboxUrl: string; database: Database };

const TIMEOUT_MS = 4_000;

/** Tenants that send messages through the API, each text once. */
export async function startSends(
  { ingressUrl, sandboxUrl, database }: Target,
  accounts: readonly DrillAccount[],
  perSecond: number,
): Promise<Sends> {
  const keys = await Promise.all(
    accounts.map(async ({ wabaId, phoneNumberId, displayPhoneNumber }) => {
      const number = { wabaId, phoneNumberId, displayPhoneNumber, verifiedName: 'Drill' };
      await postJson(`${sandboxUrl}/sandbox/phone-numbers`, number, {});
      const name = { name: 'drill', expiresAt: null, scopes: ['send'] };
      const { apiKey } = await createKey({ database, actor: SYSTEM }, wabaId, name);
      return { phoneNumberId, apiKey };
    }),
  );
  const sent: Sent[] = [];
  const stopping = new AbortController();
  const open = new Set<Promise<void>>();
  const send = async (one: Sent, { phoneNumberId, apiKey }: (typeof keys)[number]) => {
    const body = { phoneNumberId, to: '12025550143', type: 'text', text: { body: one.text } };
    const headers = { authorization: `Bearer ${apiKey}` };
    const ok = await postJson(`${ingressUrl}/api/external/messages`, body, headers).catch(() => false);
    if (ok) one.takenMs = Date.now();
  };
  const loop = (async () => {
    for (let n = 0; !stopping.signal.aborted; n += 1) {
      const key = keys[n % keys.length];
      if (key === undefined) return;
      const one: Sent = { text: `drill send ${n}`, takenMs: null };
      sent.push(one);
      const call = send(one, key).finally(() => open.delete(call));
      open.add(call);
      await delay(1_000 / perSecond, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  })();
  return {
    sent,
    stop: async () => {
      stopping.abort();
      await loop;
      await Promise.all(open);
    },
  };
}

async function postJson(url: string, body: object, headers: Record<string, string>): Promise<boolean> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  await response.body?.cancel();
  return response.ok;
}

/** Texts that upstream got twice, and those that tenants had been told were taken and upstream never got. */
export async function checkSends(
  sandboxUrl: string,
  sent: readonly Sent[],
  gaps: readonly Gap[],
): Promise<{ sentTwice: string[]; neverSent: string[]; uncertain: number }> {
  const response = await fetch(`${sandboxUrl}/sandbox/sent`);
  const { data } = (await response.json()) as { data: { body: { text?: { body?: string } } }[] };
  const counts = new Map<string, number>();
  for (const { body } of data) {
    const text = body.text?.body ?? '';
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  const isSafe = ({ takenMs }: Sent) =>
    takenMs !== null && !gaps.some(({ fromMs, toMs }) => takenMs >= fromMs && takenMs <= toMs);
  return {
    sentTwice: sent.filter(({ text }) => (counts.get(text) ?? 0) > 1).map(({ text }) => text),
    neverSent: sent.filter((one) => isSafe(one) && !counts.has(one.text)).map(({ text }) => text),
    uncertain: sent.filter((one) => !isSafe(one)).length,
  };
}
