import { type Endpoint, listEndpoints } from '../../../engine/endpoint/store.ts';
import { countWaitingBodies } from '../../../engine/inbox/waiting-bodies.ts';
import {
  AccessTokenProblem,
  listPhoneNumbers,
  openAccessToken,
} from '../../../features/accounts/accounts.ts';
import { readNumberLookup } from '../../../features/accounts/followed-numbers.ts';
import { readWabaArrivals } from '../../../ingest/bodies/quarantine.ts';
import type { SubscribedApp, UpstreamPhoneNumber } from '../../../platform/graph/graph-calls.ts';
import type { AccountClient } from '../../../platform/graph/graph-client.ts';
import { GraphError } from '../../../platform/graph/graph-error.ts';
import { shownUrl } from '../../../platform/http/outbound-url.ts';
import { badge } from '../components/badge.ts';
import { utcText } from '../components/time.ts';
import type { PortalContext } from '../portal-app.ts';

/** One thing that must be right for webhooks to arrive; `advice` says what to do when it is not. */
export type Finding = {
  question: string;
  /** `attention`: it works, but not all of it; `unknown`: it could not be found out. */
  state: 'good' | 'attention' | 'bad' | 'unknown';
  answer: string;
  advice?: string;
};

export const SIGNS = {
  good: badge('good', 'OK'),
  bad: badge('bad', 'Problem'),
  attention: badge('waiting', 'Attention'),
  unknown: badge('off', 'Unknown'),
};

/** In the order of the way of a webhook. */
export type WabaFindings = Record<
  'token' | 'subscription' | 'numbers' | 'following' | 'activity' | 'items' | 'endpoints',
  Finding
>;

/** Goes the way of a webhook, from the upstream app to the tenant's endpoint. */
export async function checkWaba(context: PortalContext, wabaId: string): Promise<WabaFindings> {
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
      state: arrivals.lastActivityAt === null ? 'unknown' : 'good',
      answer: arrivals.lastActivityAt === null ? 'Never.' : `Last at ${utcText(arrivals.lastActivityAt)}.`,
      advice: 'Send a message to the number from a phone and check again.',
    },
    items: {
      question: 'Did every received item create an event?',
      state: quarantined.length === 0 ? 'good' : 'attention',
      answer: quarantined.length === 0 ? 'Yes.' : `Not in the last 7 days: ${quarantined.join(', ')}.`,
      advice:
        'These items are in quarantine: heliograph-server admin inbox status shows them, and heliograph-server admin inbox retry processes them again.',
    },
    endpoints: endpointFinding(endpoints),
  };
}

export function callbackUrlOf({ publicUrl }: Pick<PortalContext, 'publicUrl'>): string {
  return `${publicUrl}/upstream/webhook`;
}

function endpointFinding(endpoints: readonly Endpoint[]): Finding {
  const question = 'Do its endpoints accept deliveries?';
  if (endpoints.length === 0) {
    const advice = 'Add one under Webhook Settings, then replay the status not_sent for it.';
    return { question, state: 'bad', answer: 'There is no endpoint.', advice };
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
  const state = open === endpoints.length ? 'good' : open > 0 ? 'attention' : 'bad';
  const isHeld = endpoints.some(({ mode }) => mode === 'paused' || mode === 'disabled');
  const advice = [
    failing.length > 0 &&
      'A failing endpoint: open it, read the last error, and have its server fixed. Its events are retried, and nothing is lost.',
    isHeld && 'A paused or disabled endpoint: its events wait until it is enabled.',
  ].filter((text) => text !== false);
  return { question, state, answer, ...(advice.length > 0 && { advice: advice.join(' ') }) };
}

function tokenFinding(token: string | null, numbers: GraphAnswer<UpstreamPhoneNumber[]>): Finding {
  const question = 'Does upstream accept the access token?';
  const advice =
    'Create a system user token with whatsapp_business_messaging and whatsapp_business_management for this WABA, and save it below.';
  if (token === null) return { question, state: 'bad', answer: 'There is no readable token.', advice };
  if (numbers.ok) return { question, state: 'good', answer: 'Yes.' };
  return { question, state: numbers.refused ? 'bad' : 'unknown', answer: numbers.reason, advice };
}

function subscriptionFinding(apps: GraphAnswer<SubscribedApp[]>, callbackUrl: string): Finding {
  const question = 'Does upstream send this WABA’s webhooks here?';
  const advice = `Subscribe the app to the WABA (POST /{WABA}/subscribed_apps), and enter ${callbackUrl} as its callback URL with the verify token of the settings.`;
  if (!apps.ok) return { question, state: 'unknown', answer: apps.reason, advice };
  if (apps.value.length === 0) {
    return { question, state: 'bad', answer: 'No app is subscribed to the WABA.', advice };
  }
  const elsewhere = apps.value.filter(
    ({ overrideCallbackUrl }) => overrideCallbackUrl !== null && overrideCallbackUrl !== callbackUrl,
  );
  const names = apps.value.map(({ name, id }) => name || id).join(', ');
  if (elsewhere.length === apps.value.length) {
    const urls = elsewhere.map(({ overrideCallbackUrl }) => overrideCallbackUrl).join(', ');
    return { question, state: 'bad', answer: `Subscribed: ${names}, but sent to ${urls}.`, advice };
  }
  return { question, state: 'good', answer: `Subscribed: ${names}.` };
}

function numberFinding(
  ours: readonly { phoneNumberId: string }[],
  upstream: GraphAnswer<UpstreamPhoneNumber[]>,
): Finding {
  const question = 'Are all numbers of the WABA known here?';
  const advice = 'Numbers are copied from upstream daily. To do it now, save the access token again.';
  if (ours.length === 0) return { question, state: 'bad', answer: 'No number is known.', advice };
  if (!upstream.ok) return { question, state: 'unknown', answer: `${ours.length} known.`, advice };
  const known = new Set(ours.map(({ phoneNumberId }) => phoneNumberId));
  const missing = upstream.value.filter(({ phoneNumberId }) => !known.has(phoneNumberId));
  const listed = new Set(upstream.value.map(({ phoneNumberId }) => phoneNumberId));
  const gone = ours.filter(({ phoneNumberId }) => !listed.has(phoneNumberId));
  if (gone.length > 0) {
    const goneIds = gone.map(({ phoneNumberId }) => phoneNumberId).join(', ');
    return { question, state: 'attention', answer: `Upstream does not list: ${goneIds}.`, advice };
  }
  if (missing.length === 0) return { question, state: 'good', answer: `${ours.length} known.` };
  const ids = missing.map(({ phoneNumberId }) => phoneNumberId).join(', ');
  return { question, state: 'bad', answer: `Not known: ${ids}.`, advice };
}

function followingFinding(
  { askedAt, problem }: { askedAt: Date | null; problem: string | null },
  waiting: number,
): Finding {
  const question = 'Are its numbers updated from upstream?';
  const asked = askedAt === null ? 'Not looked up yet.' : `Last looked up at ${utcText(askedAt)}.`;
  const bodies = waiting === 0 ? '' : ` ${waiting} bodies wait for a number that is not known yet.`;
  if (problem === null && waiting === 0)
    return { question, state: askedAt === null ? 'unknown' : 'good', answer: asked };
  const advice =
    'The waiting bodies are processed as soon as upstream lists the number. Save a valid access token below.';
  return { question, state: 'bad', answer: `${asked} ${problem ?? ''}${bodies}`, advice };
}

type GraphAnswer<Value> = { ok: true; value: Value } | { ok: false; refused: boolean; reason: string };

/** Asks upstream with a token; never throws for what upstream does. */
export async function callGraph<Value>(
  { upstream }: Pick<PortalContext, 'upstream'>,
  token: string | null,
  ask: (client: AccountClient, token: string) => Promise<Value>,
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
