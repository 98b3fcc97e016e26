import type { SettingLimits } from '../../engine/endpoint/setting.ts';
import { type GivenSettings, type StoredSettings, settingsOf } from '../../engine/endpoint/settings.ts';
import type { Config } from '../../platform/config/config.ts';
import { makeHostResolver } from '../../platform/http/host-resolver.ts';
import { makeAddressGuard } from '../../platform/http/outbound-url.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { checkingMember, invalidValue, RequestError, shown } from '../../platform/request-input.ts';
import { listPhoneNumbers } from '../accounts/accounts.ts';
import { checkWabaUrl, type UrlRules } from './url-check.ts';

/** A member that is missing is not changed. */
export type EndpointOptions = GivenSettings & {
  url?: string;
  /** Null as a value removes one header; headers that are not named stay. Null: none. */
  customHeaders?: Readonly<Record<string, string | null>> | null;
  /** Any text, for the format `meta`; without it one is made. */
  appSecret?: string;
  /** For the format `meta`: the URL must then prove that it knows this text. It is not stored. */
  verifyToken?: string;
};

export type OptionRules = SettingLimits & { database: Database; urlRules: UrlRules };

/** Those of the sender. */
export function optionRulesOf({ config, database }: { config: Config; database: Database }): OptionRules {
  const { allowHttp, ports, proxy } = config.webhooks;
  const urlRules = {
    allowHttp,
    ports,
    proxy,
    guard: makeAddressGuard(config.webhooks),
    resolve: makeHostResolver(),
  };
  return { database, urlRules, maxTimeoutMs: config.webhooks.timeoutMs };
}

/** Headers are checked together with those that are stored. */
type CheckedOptions = Partial<StoredSettings> & { url?: string };

/**
 * Returns the options as they are stored; `presentUrl` is the endpoint's own. Throws RequestError: `invalid_value`, `unknown_phone_number`,
 * `rate_limit_exceeded`, or the code of the refused URL.
 */
export async function checkEndpointOptions(
  rules: OptionRules,
  wabaId: string,
  given: EndpointOptions,
  presentUrl: string | null = null,
): Promise<CheckedOptions> {
  const checked: Partial<Record<keyof StoredSettings, unknown>> = {};
  for (const [name, setting] of settingsOf()) {
    const value = given[name];
    if (value === undefined) continue;
    checked[name] =
      value === null ? setting.fallback : await checkingMember(name, () => setting.check(value, rules));
  }
  const options = checked as CheckedOptions;
  const { url } = given;
  if (url !== undefined) {
    options.url = await checkingMember('url', () => checkWabaUrl(rules, wabaId, url, { presentUrl }));
  }
  const ids = options.phoneNumberIds ?? [];
  if (ids.length > 0) {
    await checkingMember('phoneNumberIds', () => refuseUnknownNumbers(rules.database, wabaId, ids));
  }
  return options;
}

type Buffering = Partial<Pick<StoredSettings, 'bufferSeconds' | 'bufferMaxSeconds' | 'orderScope'>>;

/** Of the settings as they would be. Throws RequestError: `buffer_needs_conversation_order`, `invalid_value`. */
export function checkBuffering({ bufferSeconds, bufferMaxSeconds, orderScope }: Buffering): void {
  const seconds = bufferSeconds ?? 0;
  if (seconds === 0) return;
  if (orderScope !== 'conversation') {
    throw new RequestError(
      'buffer_needs_conversation_order',
      'Messages can be buffered only where the order scope is "conversation": set orderScope too, or bufferSeconds to 0.',
      'bufferSeconds',
    );
  }
  if (bufferMaxSeconds != null && bufferMaxSeconds < seconds) {
    const message = `The longest buffer time must be at least the buffer time, ${seconds} s, not ${bufferMaxSeconds} s.`;
    throw invalidValue(message, 'bufferMaxSeconds');
  }
}

/** A number of another WABA is refused exactly as one that does not exist. */
async function refuseUnknownNumbers(database: Database, wabaId: string, ids: string[]): Promise<void> {
  const known = new Set((await listPhoneNumbers(database, wabaId)).map((number) => number.phoneNumberId));
  const unknown = ids.find((id) => !known.has(id));
  if (unknown === undefined) return;
  throw new RequestError(
    'unknown_phone_number',
    `WABA ${wabaId} has no phone number with the id ${shown(unknown)}.`,
  );
}
