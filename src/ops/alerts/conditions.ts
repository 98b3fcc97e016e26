import { listLateEndpoints } from '../../engine/deliveries/backlog.ts';
import { listUrlsSetByKeys } from '../../engine/endpoint/store.ts';
import { listRefusedTokens } from '../../features/accounts/access-tokens.ts';
import { listUpstreamProblems, type ProblemKind } from '../../features/accounts/upstream-problems.ts';
import { listExpiringCertificates } from '../../features/endpoints/endpoint-certificate.ts';
import { listEndpointTroubles, listFinalFailures } from '../../features/endpoints/endpoint-troubles.ts';
import { waitingKeyRequests } from '../../features/keys/key-requests.ts';
import { listFailedMails } from '../../features/mail/mails.ts';
import { numbersWithMessages } from '../../features/messages/messages.ts';
import { listPausedBroadcasts } from '../../features/messages/paused-broadcasts.ts';
import { listReachedUsage } from '../../features/messages/usage-days.ts';
import { listUnclaimed, listUnreadable } from '../../ingest/bodies/quarantine.ts';
import { DESTINATION_SET, type LatestChange, listLatestChanges } from '../../platform/audit/audit.ts';
import { shownUrl } from '../../platform/http/outbound-url.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { queryColumn } from '../../platform/postgres/sql.ts';
import { listFailingHooks } from '../feed/hook-store.ts';
import { MOST_LISTED as MOST } from '../health/database-questions.ts';
import { ageSeconds } from '../health/findings.ts';
import { EXPIRES_SOON_DAYS } from '../health/limits.ts';
import { healthOf, QUESTIONS } from '../health/questions.ts';
import { type AlertKind, KINDS, LATE_MINUTES } from './alert-kinds.ts';
import { listOperationsUrlsSetByKeys } from './operations-url.ts';
import { ACTIVITY_STEP, hourOf, listSilentWabas } from './silence.ts';

export type Condition = {
  kind: AlertKind;
  tenantId: string | null;
  wabaId: string | null;
  /** Unique within the kind. */
  subject: string;
  /** Public: tenants read it. It stays the same while nothing new happens. */
  reason: string;
  details: Readonly<Record<string, string | number | null>>;
  /** When it last happened, for what does not last but happens again and again. */
  latestAt: Date | null;
};

const KEY_URL_DAYS = 7;

/** A condition without its kind; `latestAt` left out: it lasts. */
type Found = Omit<Condition, 'kind' | 'latestAt'> & { latestAt?: Date };

/** Of rows that were cut, fewer conditions than the limit may be left. */
type Cut = { found: Found[]; isWhole: boolean };

/** What was found of one kind, whole if it is below the limit; null: it is not known at present. */
type Look = (database: Database, now: Date) => Promise<Found[] | Cut | null>;

/** The present conditions of each kind, in the words of its runbook. */
const LOOKS: Readonly<Record<AlertKind, Look>> = {
  endpoint_failing: (database) => troubles(database, false),
  endpoint_disabled: (database) => troubles(database, true),
  deliveries_failed: async (database) =>
    (await listFinalFailures(database, MOST)).map(({ id, failed, lastHour, ...owner }) => ({
      ...owner,
      subject: id,
      latestAt: lastHour,
      reason: `${counted(failed, 'delivery', 'deliveries')} to endpoint ${id} failed permanently in 24 hours.`,
      details: { endpointId: id, failed },
    })),
  endpoint_backlog: async (database) => {
    const minutes = LATE_MINUTES.endpoint;
    const lasting = await lastingSubjects(database, 'endpoint_backlog');
    return (await listLateEndpoints(database, { minutes, lasting, limit: MOST })).map(({ id, ...owner }) => ({
      ...owner,
      subject: id,
      reason: `Deliveries to endpoint ${id} have been due for more than ${minutes} minutes.`,
      details: { endpointId: id },
    }));
  },
  api_key_expiring: async (database, now) =>
    (await QUESTIONS.expiringKeys.ask({ database })).map(({ id, name, lastFour, expiresAt, ...owner }) => ({
      ...owner,
      subject: id,
      reason: `API key "${name}" (…${lastFour}) ${expiresAt <= now ? 'expired' : 'expires'} on ${minuteText(expiresAt)} UTC.`,
      details: { apiKeyId: id, name, expiresAt: expiresAt.toISOString() },
    })),
  client_certificate_expiring: async (database, now) =>
    (await listExpiringCertificates(database, EXPIRES_SOON_DAYS, MOST)).map(
      ({ id, expiresAt, ...owner }) => ({
        ...owner,
        subject: id,
        reason: `The client certificate of endpoint ${id} ${expiresAt <= now ? 'expired' : 'expires'} on ${minuteText(expiresAt)} UTC.`,
        details: { endpointId: id, expiresAt: expiresAt.toISOString() },
      }),
    ),
  url_set_by_key: urlsSetByKeys,
  access_token_refused: async (database) =>
    (await listRefusedTokens(database, MOST)).map(({ since, problem, ...owner }) => ({
      ...owner,
      subject: owner.wabaId,
      reason: `The access token of WABA ${owner.wabaId} is refused: ${problem}`,
      details: { since: since.toISOString() },
    })),
  number_restricted: (database) => upstreamProblems(database, 'number_restricted'),
  account_restricted: (database) => upstreamProblems(database, 'account_restricted'),
  template_stopped: (database) => upstreamProblems(database, 'template_stopped'),
  broadcast_paused: async (database) =>
    (await listPausedBroadcasts(database, MOST)).map(({ id, name, reason, ...owner }) => ({
      ...owner,
      subject: id,
      reason: `Broadcast "${name}" paused itself: ${reason}`,
      details: { broadcastId: id },
    })),
  number_shared: sharedNumbers,
  waba_silent: silentWabas,
  payloads_quarantined: async (database) =>
    (await listUnreadable(database, MOST)).map(({ wabaId, tenantId, count, reasons, lastDay }) => ({
      tenantId,
      subject: wabaId,
      latestAt: new Date(lastDay),
      wabaId: tenantId === null ? null : wabaId,
      reason: `${counted(count, 'item', 'items')} for WABA ${wabaId} were quarantined since yesterday: ${reasons.join(', ')}.`,
      details: { count, reasons: reasons.join(', ') },
    })),
  account_unclaimed: async (database) =>
    (await listUnclaimed(database, MOST)).map(({ wabaId, count, lastDay }) => ({
      ...INSTALLATION,
      subject: wabaId,
      latestAt: new Date(lastDay),
      reason: `${counted(count, 'report', 'reports')} since yesterday about WABA ${wabaId}, which no tenant has.`,
      details: { count },
    })),
  intake_backlog: (database) =>
    whenBehind(database, 'oldestBody', {
      kind: 'intake_backlog',
      reason: `Bodies of the upstream platform have waited for intake for more than ${LATE_MINUTES.intake} minutes.`,
    }),
  intake_failed: async (database) => {
    const inbox = await QUESTIONS.inbox.ask({ database });
    const { failed } = inbox;
    const reason = `${counted(failed, 'body', 'bodies')} of the upstream platform could not be ingested.`;
    return healthOf('inbox', inbox) === 'up' ? [] : [{ ...INSTALLATION, reason, details: { failed } }];
  },
  delivery_backlog: (database) =>
    whenBehind(database, 'oldestDue', {
      kind: 'delivery_backlog',
      reason: `A delivery has been due for more than ${LATE_MINUTES.deliveries} minutes.`,
    }),
  egress_proxy_down: async (database) => {
    const faults = await QUESTIONS.workerProxy.ask({ database });
    const reason = faults.join(' ');
    return healthOf('workerProxy', faults) === 'up' ? [] : [{ ...INSTALLATION, reason, details: {} }];
  },
  operations_hook_failing: async (database) =>
    (await listFailingHooks(database)).map(({ ref, lastError, isDisabled }) => ({
      ...INSTALLATION,
      subject: ref,
      reason: `Hook ${ref} ${isDisabled ? 'is disabled' : 'fails'}: ${lastError}`,
      details: {},
    })),
  quota_nearly_used: async (database) =>
    (await listReachedUsage(database, MOST)).map(({ tenantId, metric, period, threshold, during }) => ({
      tenantId,
      wabaId: null,
      subject: `${tenantId} ${metric} ${during}`,
      reason: `Tenant ${tenantId} has reached ${threshold.toLocaleString('en-US')} ${metric} messages in ${during}.`,
      details: { metric, period, threshold, during },
    })),
  mail_failed: async (database) =>
    (await listFailedMails(database, MOST)).map(({ recipient, error, failedAt }) => ({
      ...INSTALLATION,
      subject: recipient,
      latestAt: failedAt,
      reason: `An e-mail to ${recipient} could not be delivered: ${error}`,
      details: { recipient },
    })),
  key_request_pending: async (database) =>
    (await waitingKeyRequests({ database })).map(({ id, tenantId, wabaId, decideUntil }) => ({
      tenantId,
      wabaId,
      subject: id,
      reason: `Request ${id} for an API key of WABA ${wabaId} waits for a decision until ${minuteText(decideUntil)} UTC.`,
      details: { requestId: id, decideUntil: decideUntil.toISOString() },
    })),
};

const INSTALLATION = { tenantId: null, wabaId: null, subject: '' };

export type Looked =
  | { kind: AlertKind; conditions: Condition[]; isWhole: boolean }
  | { kind: AlertKind; error: unknown };

/** Looks at every kind by itself: one that cannot be looked at leaves its alerts as they are. */
export async function lookForConditions(
  database: Database,
  now: Date,
  { isDevelopment = false } = {},
): Promise<Looked[]> {
  const looked: Looked[] = [];
  for (const [kind, look] of Object.entries(LOOKS) as [AlertKind, Look][]) {
    if (isDevelopment && KINDS[kind].isQuietInDevelopment) continue;
    try {
      const seen = await look(database, now);
      if (seen === null) continue;
      const { found, isWhole } = Array.isArray(seen) ? cutOf(seen, [seen]) : seen;
      const conditions = found.map((one) => ({ latestAt: null, ...one, kind }));
      looked.push({ kind, conditions, isWhole });
    } catch (error) {
      looked.push({ kind, error });
    }
  }
  return looked;
}

function cutOf(found: Found[], lists: readonly (readonly unknown[])[]): Cut {
  return { found, isWhole: lists.every(({ length }) => length < MOST) };
}

async function troubles(database: Database, isDisabled: boolean): Promise<Found[]> {
  const found = await listEndpointTroubles(database, isDisabled, MOST);
  return found.map(({ id, url, description, since, reason, ...owner }) => ({
    ...owner,
    subject: id,
    reason: isDisabled
      ? `Endpoint ${id} (${description || shownUrl(url)}) was disabled: ${reason ?? 'no reason given'}.`
      : `Endpoint ${id} (${description || shownUrl(url)}) fails: ${reason ?? 'every attempt fails'}.`,
    details: { endpointId: id, since: since.toISOString() },
  }));
}

/** Of a URL only the host is written down: the rest can be secret. */
async function urlsSetByKeys(database: Database): Promise<Cut> {
  const recent = { days: KEY_URL_DAYS, limit: MOST };
  const endpoints = await listUrlsSetByKeys(database, recent);
  const operations = await listOperationsUrlsSetByKeys(database, recent);
  const found = [
    ...endpoints.map(({ id, ...set }) => ({ ...set, subject: `endpoint ${id}` })),
    ...operations.map((set) => ({ ...set, subject: `operations URL ${set.wabaId}` })),
  ];
  const byKeyAndDay = Map.groupBy(found, ({ keyId, setAt }) => `key ${keyId} ${dayText(setAt)}`);
  const urls = [...byKeyAndDay].map(([subject, sets]) => ({ ...urlsOfKey(sets), subject }));
  const flows = await listLatestChanges(database, DESTINATION_SET, recent);
  return cutOf([...urls, ...flows.map(flowDestination)], [endpoints, operations, flows]);
}

type UrlSet = { wabaId: string; tenantId: string; subject: string; url: string; keyId: string; setAt: Date };

const NAMED_URLS = 3;

/** What one key did in one day: a program that sets up ten endpoints is one thing to look at, not ten. */
function urlsOfKey(sets: readonly UrlSet[]): Omit<Found, 'subject'> {
  const newest = sets.toSorted((a, b) => b.setAt.getTime() - a.setAt.getTime());
  const [first] = newest;
  if (first === undefined) throw new Error('a group of URLs is empty');
  const { wabaId, tenantId, keyId, setAt } = first;
  const named = newest.slice(0, NAMED_URLS).map(({ subject, url }) => {
    return `${subject.replace(/^operations URL/, 'the alerts of WABA')}: ${new URL(url).host}`;
  });
  const more = newest.length - named.length;
  const rest = more > 0 ? ` and ${more} more` : '';
  const urls = newest.length === 1 ? 'the URL of' : `${newest.length} URLs, of`;
  return {
    wabaId,
    tenantId,
    latestAt: setAt,
    reason: `API key ${keyId} set ${urls} ${named.join(', ')}${rest}.`,
    details: { apiKeyId: keyId, count: newest.length, host: new URL(first.url).host },
  };
}

function dayText(at: Date): string {
  return at.toISOString().slice(0, 10);
}

/** What customers enter in flows goes there, or is read with that key. */
function flowDestination({ wabaId, tenantId, actor, target, detail, at }: LatestChange): Found {
  const host = typeof detail.host === 'string' ? detail.host : null;
  const isKey = detail.member === 'business_public_key';
  const set = isKey ? `the key that encrypts the forms of ${target}` : `where the forms of ${target} go`;
  return {
    wabaId,
    tenantId,
    subject: target,
    latestAt: at,
    reason: `${actor} set ${set}${host === null ? '' : `: ${host}`}.`,
    details: { host },
  };
}

/** The reason changes with each report, so what becomes worse is reported again. */
async function upstreamProblems(database: Database, kind: ProblemKind): Promise<Found[]> {
  return (await listUpstreamProblems(database, kind, MOST)).map(
    ({ subject, reason, reportedAt, ...owner }) => ({
      ...owner,
      reason,
      subject: `${owner.wabaId} ${subject}`,
      details: { about: subject, reportedAt: reportedAt.toISOString() },
    }),
  );
}

const SHARED_DAYS = 7;

/** Numbers of which others have conversations from the beginning are no news. */
async function sharedNumbers(database: Database): Promise<Cut> {
  const problems = await listUpstreamProblems(database, 'number_shared', MOST);
  const numbers = problems.map(({ wabaId, subject }) => ({ wabaId, phoneNumberId: subject }));
  const joined = await numbersWithMessages(database, numbers, SHARED_DAYS);
  const found = problems.flatMap(({ subject, reason, reportedAt: _at, ...owner }) =>
    joined.has(subject) ? [{ ...owner, subject, reason, details: { phoneNumberId: subject } }] : [],
  );
  return cutOf(found, [problems]);
}

/** While bodies wait for intake, nothing can be said of what has come. */
async function silentWabas(database: Database): Promise<Found[] | null> {
  if (healthOf('oldestBody', await QUESTIONS.oldestBody.ask({ database })) === 'down') return null;
  const noted = (await QUESTIONS.housekeeping.ask({ database })).find(
    ({ step }) => step === ACTIVITY_STEP,
  )?.succeededAt;
  if (!noted) return null;
  const until = new Date(hourOf(noted));
  return (await listSilentWabas(database, until, MOST)).map(({ since, ...owner }) => ({
    ...owner,
    subject: owner.wabaId,
    reason: `No webhooks for WABA ${owner.wabaId} since ${since.toISOString().slice(0, 16).replace('T', ' ')} UTC; it is usually active at this time.`,
    details: { since: since.toISOString() },
  }));
}

function minuteText(at: Date): string {
  return at.toISOString().slice(0, 16).replace('T', ' at ');
}

/** It ends below half of what it begins with: what swings about the limit is reported once. */
async function whenBehind(
  database: Database,
  id: 'oldestBody' | 'oldestDue',
  { kind, reason }: Pick<Condition, 'kind' | 'reason'>,
): Promise<Found[]> {
  const seconds = ageSeconds(await QUESTIONS[id].ask({ database }));
  const down = QUESTIONS[id].limit?.down ?? 0;
  const lasts = seconds > down / 2 && (await lastingSubjects(database, kind)).length > 0;
  return seconds > down || lasts ? [{ ...INSTALLATION, reason, details: {} }] : [];
}

/** The subjects of alerts of a kind whose condition was not over at the last look. */
async function lastingSubjects(database: Database, kind: AlertKind): Promise<string[]> {
  const text = 'select subject from alerts where kind = :kind and over_at is null';
  return await queryColumn<string>(database, text, { kind });
}

function counted(count: number, one: string, several: string): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? one : several}`;
}
