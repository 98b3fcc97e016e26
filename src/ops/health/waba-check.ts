import { type Endpoint, listEndpoints } from '../../engine/endpoint/store.ts';
import { countWaitingBodies } from '../../engine/inbox/waiting-bodies.ts';
import { usableToken } from '../../features/accounts/access-tokens.ts';
import { listPhoneNumbers } from '../../features/accounts/accounts.ts';
import { readNumberLookup } from '../../features/accounts/followed-numbers.ts';
import { readWabaArrivals } from '../../ingest/bodies/quarantine.ts';
import type { SealedDatabase } from '../../platform/crypto/sealed-database.ts';
import type { SubscribedApp } from '../../platform/graph/graph-calls.ts';
import type { AccountClient } from '../../platform/graph/graph-client.ts';
import { GraphError } from '../../platform/graph/graph-error.ts';
import { shownUrl } from '../../platform/http/outbound-url.ts';
import { utcText } from '../../platform/iso-time.ts';
import type { Database } from '../../platform/postgres/database.ts';
import type { Finding } from './findings.ts';
import type { Question } from './question.ts';

type GraphAnswer<Value> = { ok: true; value: Value } | { ok: false; refused: boolean; reason: string };

type WabaFacts = Awaited<ReturnType<typeof readFacts>>;

type OfWaba = Question<WabaFacts, Finding>;

function forTenants<Id extends string>(given: Record<Id, OfWaba>): Record<Id, OfWaba> {
  for (const one of Object.values<OfWaba>(given)) one.asker = 'tenant';
  return given;
}

/** Of a WABA, in the order of the way of a webhook from the upstream app to the tenant's endpoint. */
export const WABA_QUESTIONS = forTenants({
  token: {
    question: 'Does upstream accept the access token?',
    ask: async ({ token, upstreamNumbers }) => {
      if (token === null) return { status: 'down', detail: 'There is no readable token.' };
      if (upstreamNumbers.ok) return { status: 'up', detail: 'Yes.' };
      const { refused, reason } = upstreamNumbers;
      return { status: refused ? 'down' : 'unknown', detail: reason };
    },
    advice:
      'Create a system user token with whatsapp_business_messaging and whatsapp_business_management for this WABA, and save it for the WABA.',
  },
  subscription: {
    question: 'Does upstream send this WABA’s webhooks here?',
    ask: async ({ apps, callbackUrl }) => ({
      ...subscribed(apps, callbackUrl),
      todo: `Subscribe the app to the WABA (POST /{WABA}/subscribed_apps), and enter ${callbackUrl} as its callback URL with the verify token of the settings.`,
    }),
  },
  numbers: {
    question: 'Are all numbers of the WABA known here?',
    ask: async ({ numbers, upstreamNumbers }) => {
      if (numbers.length === 0) return { status: 'down', detail: 'No number is known.' };
      const known = `${numbers.length} known.`;
      if (!upstreamNumbers.ok) return { status: 'unknown', detail: known };
      const gone = missingFrom(upstreamNumbers.value, numbers);
      if (gone !== '') return { status: 'degraded', detail: `Upstream does not list: ${gone}.` };
      const missing = missingFrom(numbers, upstreamNumbers.value);
      if (missing !== '') return { status: 'down', detail: `Not known: ${missing}.` };
      return { status: 'up', detail: known };
    },
    advice: 'Numbers are copied from upstream daily. To do it now, save the access token again.',
  },
  following: {
    question: 'Are its numbers updated from upstream?',
    ask: async ({ lookup: { askedAt, problem }, waiting }) => {
      const asked = askedAt === null ? 'Not looked up yet.' : `Last looked up at ${utcText(askedAt)}.`;
      if (problem === null && waiting === 0)
        return { status: askedAt === null ? 'unknown' : 'up', detail: asked };
      const bodies = waiting === 0 ? '' : ` ${waiting} bodies wait for a number that is not known yet.`;
      const todo =
        'The waiting bodies are processed as soon as upstream lists the number. Save a valid access token for the WABA.';
      return { status: 'down', detail: `${asked} ${problem ?? ''}${bodies}`, todo };
    },
  },
  activity: {
    question: 'Has any message been received or sent?',
    ask: async ({ arrivals: { lastActivityAt } }) =>
      lastActivityAt === null
        ? { status: 'unknown', detail: 'Never.' }
        : { status: 'up', detail: `Last at ${utcText(lastActivityAt)}.` },
    advice: 'Send a message to the number from a phone and check again.',
  },
  items: {
    question: 'Did every received item create an event?',
    ask: async ({ arrivals: { quarantined } }) => {
      if (quarantined.length === 0) return { status: 'up', detail: 'Yes.' };
      const reasons = quarantined.map(({ reason, count }) => `${reason.replaceAll('_', ' ')}: ${count}`);
      return { status: 'degraded', detail: `Not in the last 7 days: ${reasons.join(', ')}.` };
    },
    advice:
      'These items are in quarantine: heliograph-server admin inbox status shows them, and heliograph-server admin inbox retry processes them again.',
  },
  endpoints: {
    question: 'Do its endpoints accept deliveries?',
    ask: async ({ endpoints }) =>
      endpoints.length > 0 ? accepting(endpoints) : { status: 'down', detail: 'There is no endpoint.' },
    advice: 'Add one under Webhook Settings, then replay the status not_sent for it.',
  },
});

type Numbers = readonly { phoneNumberId: string }[];

/** Those of `all` that are not in `some`. */
function missingFrom(some: Numbers, all: Numbers): string {
  const ids = new Set(some.map(({ phoneNumberId }) => phoneNumberId));
  return all
    .map(({ phoneNumberId }) => phoneNumberId)
    .filter((id) => !ids.has(id))
    .join(', ');
}

function subscribed(apps: GraphAnswer<SubscribedApp[]>, callbackUrl: string): Finding {
  if (!apps.ok) return { status: 'unknown', detail: apps.reason };
  if (apps.value.length === 0) return { status: 'down', detail: 'No app is subscribed to the WABA.' };
  const names = apps.value.map(({ name, id }) => name || id).join(', ');
  const urls = apps.value.map(({ overrideCallbackUrl }) => overrideCallbackUrl ?? callbackUrl);
  if (urls.includes(callbackUrl)) return { status: 'up', detail: `Subscribed: ${names}.` };
  return { status: 'down', detail: `Subscribed: ${names}, but sent to ${urls.join(', ')}.` };
}

function accepting(endpoints: readonly Endpoint[]): Finding {
  const kindOf = ({ mode, failingSince }: Endpoint) =>
    mode === 'probing' || (mode === 'open' && failingSince !== null) ? 'failing' : mode;
  const byKind = Map.groupBy(endpoints, kindOf);
  const open = byKind.get('open')?.length ?? 0;
  const failing = byKind.get('failing') ?? [];
  const numbers = (['open', 'failing', 'paused', 'disabled'] as const).flatMap((kind) => {
    const count = byKind.get(kind)?.length ?? 0;
    return count === 0 ? [] : [`${count} ${kind === 'open' ? 'active' : kind}`];
  });
  const named = failing.map(({ id, url, description }) => `endpoint ${id} (${description || shownUrl(url)})`);
  const todo = [
    failing.length > 0 &&
      'A failing endpoint: open it, read the last error, and have its server fixed. Its events are retried, and nothing is lost.',
    open + failing.length < endpoints.length &&
      'A paused or disabled endpoint: its events wait until it is enabled.',
  ].filter((text) => text !== false);
  return {
    status: open === endpoints.length ? 'up' : open > 0 ? 'degraded' : 'down',
    detail: `${numbers.join(', ')}${named.length > 0 ? `: ${named.join(', ')}` : ''}.`,
    todo: todo.join(' '),
  };
}

/** One thing that must be right for webhooks to arrive. */
export type WabaFinding = Finding & { question: string };

type UpstreamClient = { client(): Promise<Pick<AccountClient, 'listPhoneNumbers' | 'listSubscribedApps'>> };

export type WabaCheckTools = {
  accounts: SealedDatabase;
  database: Database;
  upstream: UpstreamClient;
  publicUrl: string;
};

export type WabaFindings = Record<keyof typeof WABA_QUESTIONS, WabaFinding>;

/** Asks each question about a WABA; `todo` stands where the answer is not up. */
export async function checkWaba(context: WabaCheckTools, wabaId: string): Promise<WabaFindings> {
  const facts = await readFacts(context, wabaId);
  const found = Object.entries(WABA_QUESTIONS).map(async ([id, { question, ask, ...given }]) => {
    const { todo = 'advice' in given ? given.advice : '', ...finding } = await ask(facts);
    return [id, { question, ...finding, ...(finding.status !== 'up' && todo !== '' && { todo }) }];
  });
  return Object.fromEntries(await Promise.all(found));
}

/** Each part is read once, for the questions that it answers. `token`: null where none can be read. */
async function readFacts(context: WabaCheckTools, wabaId: string) {
  const { accounts, database } = context;
  const token = await usableToken(accounts, wabaId);
  const [upstreamNumbers, apps, numbers, arrivals, endpoints, lookup, waiting] = await Promise.all([
    callGraph(context, token, (client, key) => client.listPhoneNumbers(wabaId, key)),
    callGraph(context, token, (client, key) => client.listSubscribedApps(wabaId, key)),
    listPhoneNumbers(database, wabaId),
    readWabaArrivals(database, wabaId),
    listEndpoints(database, wabaId),
    readNumberLookup(database, wabaId),
    countWaitingBodies(database, wabaId),
  ]);
  const callbackUrl = callbackUrlOf(context);
  return { token, upstreamNumbers, apps, numbers, arrivals, endpoints, lookup, waiting, callbackUrl };
}

export function callbackUrlOf({ publicUrl }: Pick<WabaCheckTools, 'publicUrl'>): string {
  return `${publicUrl}/upstream/webhook`;
}

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
