import { listPhoneNumbers } from '../database/accounts.ts';
import type { Database } from '../database/database.ts';
import type { OrderScope } from '../database/subscribers.ts';
import { checkEndpointUrl, type EndpointUrlRules } from '../deliveries/sender/endpoint-url.ts';
import type { ResolveHost } from '../deliveries/sender/resolve-host.ts';
import { EVENT_TYPES, type EventType } from '../domain/event-type.ts';
import { MAX_RETRY_DELAY_MS, MIN_RETRY_DELAY_MS } from '../domain/webhook/retry-schedule.ts';
import type { SignatureProfile } from '../domain/webhook/webhook-signature.ts';
import type { StoredEndpointOptions } from '../endpoints/store.ts';
import { AccountError, checkingMember, invalidValue } from './account-error.ts';
import { checkDescription, shown } from './account-input.ts';

const SIGNATURE_PROFILES = ['standard', 'github', 'stripe'] as const satisfies readonly SignatureProfile[];
const ORDER_SCOPES = ['event', 'conversation', 'endpoint'] as const satisfies readonly OrderScope[];
const MAX_RETRIES = 20;
const MIN_TIMEOUT_MS = 1_000;
const DAY_SECONDS = 86_400;

/** The rules by which the sender judges URLs too, so that what is accepted here is what is sent to. */
export type UrlRules = EndpointUrlRules & { resolve: ResolveHost };

/**
 * What may be chosen for an endpoint. A member that is missing is not changed, null means the default: every event
 * type or number (also those to come), the installation's setting, no limit, no headers.
 */
export type EndpointOptions = {
  url?: string;
  description?: string | null;
  eventTypes?: readonly string[] | null;
  /** Numbers of the endpoint's WABA. */
  phoneNumberIds?: readonly string[] | null;
  /** Null as a value removes one header; headers that are not named stay. */
  customHeaders?: Readonly<Record<string, string | null>> | null;
  /** Waits in s before attempts 2, 3, …; after the last one a delivery has failed for good. */
  retryScheduleSeconds?: readonly number[] | null;
  /** Whole attempt, at most as long as the installation's. */
  timeoutMs?: number | null;
  signatureProfile?: string | null;
  maxInFlight?: number | null;
  rateLimitPerSecond?: number | null;
  /** How long in s a failing delivery may block others of its key before it steps aside; 0: for ever. */
  blockLimitSeconds?: number | null;
  orderScope?: string | null;
};

export type OptionRules = {
  database: Database;
  urlRules: UrlRules;
  /** The installation's time-out in ms: leases are as long as it needs, so no endpoint can have a longer one. */
  maxTimeoutMs: number;
};

/** All but the headers, which are checked together with those that are stored. */
type CheckedOptions = Partial<Omit<StoredEndpointOptions, 'customHeadersSealed'>>;

/**
 * Checks every option that is given and returns them as they are stored.
 * Throws AccountError: `invalid_value`, `unknown_phone_number`, or the code of the refused URL.
 */
export async function checkEndpointOptions(
  rules: OptionRules,
  wabaId: string,
  given: EndpointOptions,
): Promise<CheckedOptions> {
  const member = <Name extends keyof EndpointOptions, Stored, Default>(
    name: Name,
    check: (value: NonNullable<EndpointOptions[Name]>) => Stored | Promise<Stored>,
    fallback: Default,
  ) => checkingMember(name, () => checked(given[name], check, fallback));
  return withoutMissing({
    description: await member('description', (text) => checkDescription('The description', text), ''),
    eventTypes: await member('eventTypes', checkEventTypes, null),
    retryScheduleSeconds: await member('retryScheduleSeconds', checkRetrySchedule, null),
    timeoutMs: await member('timeoutMs', (ms) => checkTimeout(ms, rules.maxTimeoutMs), null),
    signatureProfile: await member(
      'signatureProfile',
      (name) => oneOf('The signature profile', SIGNATURE_PROFILES, name),
      'standard' as const,
    ),
    maxInFlight: await member('maxInFlight', (n) => wholeNumber('The in-flight limit', n, 1, 500), null),
    rateLimitPerSecond: await member(
      'rateLimitPerSecond',
      (n) => wholeNumber('The rate limit per second', n, 1, 10_000),
      null,
    ),
    blockLimitSeconds: await member(
      'blockLimitSeconds',
      (n) =>
        n === 0 ? n : wholeNumber('The block limit in seconds, unless it is 0,', n, 60, 7 * DAY_SECONDS),
      null,
    ),
    orderScope: await member(
      'orderScope',
      (name) => oneOf('The order scope', ORDER_SCOPES, name),
      'event' as const,
    ),
    url:
      given.url === undefined ? undefined : await member('url', (url) => checkUrl(url, rules.urlRules), ''),
    phoneNumberIds: await member(
      'phoneNumberIds',
      (ids) => checkPhoneNumberIds(rules.database, wabaId, ids),
      null,
    ),
  });
}

function checked<Given, Stored, Default>(
  value: Given | undefined,
  check: (value: NonNullable<Given>) => Stored | Promise<Stored>,
  fallback: Default,
): Stored | Promise<Stored> | Default | undefined {
  if (value === undefined) return undefined;
  return value === null ? fallback : check(value);
}

function withoutMissing<T extends object>(options: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as never;
}

async function checkUrl(url: string, rules: UrlRules): Promise<string> {
  const verdict = await checkEndpointUrl(url, rules);
  if (!verdict.ok) throw new AccountError(verdict.code, verdict.message);
  return verdict.url;
}

function checkEventTypes(names: readonly string[]): EventType[] {
  const types = [...new Set(names)].map((name) => oneOf('An event type', EVENT_TYPES, name));
  if (types.length === 0) throw invalidValue(`Name at least one event type of ${EVENT_TYPES.join(', ')}.`);
  return types;
}

/** A number of another WABA is refused exactly as one that does not exist. */
async function checkPhoneNumberIds(
  database: Database,
  wabaId: string,
  given: readonly string[],
): Promise<string[]> {
  const known = new Set((await listPhoneNumbers(database, wabaId)).map((number) => number.phoneNumberId));
  const ids = [...new Set(given)];
  const unknown = ids.find((id) => !known.has(id));
  if (unknown !== undefined) {
    throw new AccountError(
      'unknown_phone_number',
      `WABA ${wabaId} has no phone number with the id ${shown(unknown)}.`,
    );
  }
  if (ids.length === 0) throw invalidValue('Name at least one phone number id.');
  return ids;
}

function checkRetrySchedule(seconds: readonly number[]): number[] {
  if (seconds.length < 1 || seconds.length > MAX_RETRIES) {
    throw invalidValue(`The retry schedule must have 1 to ${MAX_RETRIES} waits, not ${seconds.length}.`);
  }
  for (const wait of seconds) {
    wholeNumber(
      'Each wait of the retry schedule, in seconds,',
      wait,
      MIN_RETRY_DELAY_MS / 1000,
      MAX_RETRY_DELAY_MS / 1000,
    );
  }
  const total = seconds.reduce((sum, wait) => sum + wait, 0);
  if (total > 7 * DAY_SECONDS) {
    throw invalidValue(
      `The waits of the retry schedule may be 7 days (${7 * DAY_SECONDS} s) together, not ${total} s.`,
    );
  }
  return [...seconds];
}

function checkTimeout(ms: number, maximumMs: number): number {
  return wholeNumber('The time-out in ms', ms, MIN_TIMEOUT_MS, maximumMs, ', the time-out of this service');
}

function wholeNumber(what: string, value: number, minimum: number, maximum: number, note = ''): number {
  if (Number.isInteger(value) && value >= minimum && value <= maximum) return value;
  throw invalidValue(
    `${what} must be a whole number from ${minimum} to ${maximum}${note}, not ${shown(String(value))}.`,
  );
}

function oneOf<Name extends string>(what: string, names: readonly Name[], given: string): Name {
  const name = names.find((known) => known === given);
  if (name !== undefined) return name;
  throw invalidValue(`${what} must be one of ${names.join(', ')}, not ${shown(String(given))}.`);
}
