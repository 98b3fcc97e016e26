import { type Endpoint, listEndpoints } from '../../engine/endpoint/store.ts';
import { countWaitingBodies } from '../../engine/inbox/waiting-bodies.ts';
import { AccessTokenProblem, listPhoneNumbers, openAccessToken } from '../../features/accounts/accounts.ts';
import { readNumberLookup } from '../../features/accounts/followed-numbers.ts';
import { readWabaArrivals } from '../../ingest/bodies/quarantine.ts';
import type { SealedDatabase } from '../../platform/crypto/sealed-database.ts';
import type { SubscribedApp, UpstreamPhoneNumber } from '../../platform/graph/graph-calls.ts';
import type { AccountClient } from '../../platform/graph/graph-client.ts';
import { GraphError } from '../../platform/graph/graph-error.ts';
import { shownUrl } from '../../platform/http/outbound-url.ts';
import type { Database } from '../../platform/postgres/database.ts';
import type { Finding } from './checks.ts';

/** One thing that must be right for webhooks to arrive. */
export type WabaFinding = Finding & { question: string };

type UpstreamClient = { client(): Promise<Pick<AccountClient, 'listPhoneNumbers' | 'listSubscribedApps'>> };

export type WabaCheckTools = {
  accounts: SealedDatabase;
  database: Database;
  upstream: UpstreamClient;
  publicUrl: string;
};

/** In the order of the way of a webhook. */
export type WabaFindings = Record<
  'token' | 'subscription' | 'numbers' | 'following' | 'activity' | 'items' | 'endpoints',
  WabaFinding
>;

/** Goes the way of a webhook, from the upstream app to the tenant's endpoint. */
export async function checkWaba(context: WabaCheckTools, wabaId: string): Promise<WabaFindings> {
  const { accounts, database } = context;
  const token = await openAccessToken(accounts, wabaId).catch((error: unknown) => {
    if (error instanceof AccessTokenProblem) return null;
    throw error;
  });
  const [upstreamNumbers, apps, numbers, arrivals, endpoints, lookup, waiting] = await Promise.all([
    callGraph(context, token, (client, key) => client.listPhoneNumbers(wabaId, key)),
    callGraph(context, token, (client, key) => client.listSubscribedApps(wabaId, key)),
    listPhoneNumbers(database, wabaId),
    readWabaArrivals(database, wabaId),
    listEndpoints(database, wabaId),
    readNumberLookup(database, wabaId),
    countWaitingBodies(database, wabaId),
  ]);
  const quarantined = arrivals.quarantined.map(
    ({ reason, count }) => `${reason.replaceAll('_', ' ')}: ${count}`,
  );
  return {
    token: tokenFinding(token, upstreamNumbers),
    subscription: subscriptionFinding(apps, callbackUrlOf(context)),
    numbers: numberFinding(numbers, upstreamNumbers),
    following: followingFinding(lookup, waiting),
    activity: {
      question: 'Has any message been received or sent?',
      status: arrivals.lastActivityAt === null ? 'unknown' : 'up',
      detail: arrivals.lastActivityAt === null ? 'Never.' : `Last at ${shownTime(arrivals.lastActivityAt)}.`,
      todo: 'Send a message to the number from a phone and check again.',
    },
    items: {
      question: 'Did every received item create an event?',
      status: quarantined.length === 0 ? 'up' : 'degraded',
      detail: quarantined.length === 0 ? 'Yes.' : `Not in the last 7 days: ${quarantined.join(', ')}.`,
      todo: 'These items are in quarantine: heliograph-server admin inbox status shows them, and heliograph-server admin inbox retry processes them again.',
    },
    endpoints: endpointFinding(endpoints),
  };
}

function shownTime(at: Date): string {
  return `${at.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

export function callbackUrlOf({ publicUrl }: Pick<WabaCheckTools, 'publicUrl'>): string {
  return `${publicUrl}/upstream/webhook`;
}

function endpointFinding(endpoints: readonly Endpoint[]): WabaFinding {
  const question = 'Do its endpoints accept deliveries?';
  if (endpoints.length === 0) {
    const advice = 'Add one under Webhook Settings, then replay the status not_sent for it.';
    return { question, status: 'down', detail: 'There is no endpoint.', todo: advice };
  }
  const kindOf = ({ mode, failingSince }: Endpoint) =>
    mode === 'probing' || (mode === 'open' && failingSince !== null) ? 'failing' : mode;
  const kinds = ['open', 'failing', 'paused', 'disabled'] as const;
  const counts = kinds.map((kind) => [kind, endpoints.filter((one) => kindOf(one) === kind)] as const);
  const failing = endpoints
    .filter((one) => kindOf(one) === 'failing')
    .map(({ id, url, description }) => `endpoint ${id} (${description || shownUrl(url)})`);
  const numbers = counts
    .filter(([, ones]) => ones.length > 0)
    .map(([kind, ones]) => `${ones.length} ${kind === 'open' ? 'active' : kind}`);
  const answer = `${numbers.join(', ')}${failing.length > 0 ? `: ${failing.join(', ')}` : ''}.`;
  const open = endpoints.filter((one) => kindOf(one) === 'open').length;
  const status = open === endpoints.length ? 'up' : open > 0 ? 'degraded' : 'down';
  const isHeld = endpoints.some(({ mode }) => mode === 'paused' || mode === 'disabled');
  const advice = [
    failing.length > 0 &&
      'A failing endpoint: open it, read the last error, and have its server fixed. Its events are retried, and nothing is lost.',
    isHeld && 'A paused or disabled endpoint: its events wait until it is enabled.',
  ].filter((text) => text !== false);
  return { question, status, detail: answer, ...(advice.length > 0 && { todo: advice.join(' ') }) };
}

function tokenFinding(token: string | null, numbers: GraphAnswer<UpstreamPhoneNumber[]>): WabaFinding {
  const question = 'Does upstream accept the access token?';
  const advice =
    'Create a system user token with whatsapp_business_messaging and whatsapp_business_management for this WABA, and save it for the WABA.';
  if (token === null)
    return { question, status: 'down', detail: 'There is no readable token.', todo: advice };
  if (numbers.ok) return { question, status: 'up', detail: 'Yes.' };
  return { question, status: numbers.refused ? 'down' : 'unknown', detail: numbers.reason, todo: advice };
}

function subscriptionFinding(apps: GraphAnswer<SubscribedApp[]>, callbackUrl: string): WabaFinding {
  const question = 'Does upstream send this WABA’s webhooks here?';
  const advice = `Subscribe the app to the WABA (POST /{WABA}/subscribed_apps), and enter ${callbackUrl} as its callback URL with the verify token of the settings.`;
  if (!apps.ok) return { question, status: 'unknown', detail: apps.reason, todo: advice };
  if (apps.value.length === 0) {
    return { question, status: 'down', detail: 'No app is subscribed to the WABA.', todo: advice };
  }
  const elsewhere = apps.value.filter(
    ({ overrideCallbackUrl }) => overrideCallbackUrl !== null && overrideCallbackUrl !== callbackUrl,
  );
  const names = apps.value.map(({ name, id }) => name || id).join(', ');
  if (elsewhere.length === apps.value.length) {
    const urls = elsewhere.map(({ overrideCallbackUrl }) => overrideCallbackUrl).join(', ');
    return { question, status: 'down', detail: `Subscribed: ${names}, but sent to ${urls}.`, todo: advice };
  }
  return { question, status: 'up', detail: `Subscribed: ${names}.` };
}

function numberFinding(
  ours: readonly { phoneNumberId: string }[],
  upstream: GraphAnswer<UpstreamPhoneNumber[]>,
): WabaFinding {
  const question = 'Are all numbers of the WABA known here?';
  const advice = 'Numbers are copied from upstream daily. To do it now, save the access token again.';
  if (ours.length === 0) return { question, status: 'down', detail: 'No number is known.', todo: advice };
  if (!upstream.ok) return { question, status: 'unknown', detail: `${ours.length} known.`, todo: advice };
  const known = new Set(ours.map(({ phoneNumberId }) => phoneNumberId));
  const missing = upstream.value.filter(({ phoneNumberId }) => !known.has(phoneNumberId));
  const listed = new Set(upstream.value.map(({ phoneNumberId }) => phoneNumberId));
  const gone = ours.filter(({ phoneNumberId }) => !listed.has(phoneNumberId));
  if (gone.length > 0) {
    const goneIds = gone.map(({ phoneNumberId }) => phoneNumberId).join(', ');
    return { question, status: 'degraded', detail: `Upstream does not list: ${goneIds}.`, todo: advice };
  }
  if (missing.length === 0) return { question, status: 'up', detail: `${ours.length} known.` };
  const ids = missing.map(({ phoneNumberId }) => phoneNumberId).join(', ');
  return { question, status: 'down', detail: `Not known: ${ids}.`, todo: advice };
}

function followingFinding(
  { askedAt, problem }: { askedAt: Date | null; problem: string | null },
  waiting: number,
): WabaFinding {
  const question = 'Are its numbers updated from upstream?';
  const asked = askedAt === null ? 'Not looked up yet.' : `Last looked up at ${shownTime(askedAt)}.`;
  const bodies = waiting === 0 ? '' : ` ${waiting} bodies wait for a number that is not known yet.`;
  if (problem === null && waiting === 0)
    return { question, status: askedAt === null ? 'unknown' : 'up', detail: asked };
  const advice =
    'The waiting bodies are processed as soon as upstream lists the number. Save a valid access token for the WABA.';
  return { question, status: 'down', detail: `${asked} ${problem ?? ''}${bodies}`, todo: advice };
}

type GraphAnswer<Value> = { ok: true; value: Value } | { ok: false; refused: boolean; reason: string };

/** Asks upstream with a token; never throws for what upstream does. */
export async function callGraph<Value, Client>(
  { upstream }: { upstream: { client(): Promise<Client> } },
  token: string | null,
  ask: (client: Client, token: string) => Promise<Value>,
): Promise<GraphAnswer<Value>> {
  if (token === null) return { ok: false, refused: true, reason: 'There is no access token.' };
  try {
    return { ok: true, value: await ask(await upstream.client(), token) };
  } catch (error) {
    if (!(error instanceof GraphError)) throw error;
    const reason = error.transient
      ? `Upstream is not available at the moment: ${error.message}`
      : `Upstream refuses: ${error.message}`;
    return { ok: false, refused: !error.transient, reason };
  }
}
