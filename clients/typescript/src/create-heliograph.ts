import { createClient } from './generated/client/index.js';
import { Heliograph } from './heliograph.js';
import { errorOf } from './heliograph-error.js';
import { HeliographPlatform } from './heliograph-platform.js';
import { type RetryOptions, retryingFetch } from './retrying-fetch.js';

/** Where the service is, and for whom to speak. */
export type HeliographOptions = {
  /** For example `https://gateway.example`. */
  baseUrl: string;
  /** Takes the place of the global `fetch`. */
  fetch?: typeof fetch;
} & (TenantKey | PlatformKey) &
  Partial<RetryOptions>;

type TenantKey = {
  /** `ck_` and 64 hexadecimal digits; it belongs to one WABA. Left out by a program that uses `platform` alone. */
  apiKey: string;
  platformKey?: string;
};

type PlatformKey = {
  apiKey?: string;
  /** `hp_` and 64 hexadecimal digits, for `platform`. The operator of the service makes it. */
  platformKey: string;
};

/**
 * A client with a method for each operation of the External API. They resolve with `data` and `response`; they throw
 * `HeliographError` for an error answer, and `HeliographConnectionError` when there is no answer. Reads and sends are
 * repeated after temporary failures, three times unless `retries` says otherwise. Throws `TypeError` for an address or a
 * key that cannot be one.
 */
export function createHeliograph(options: HeliographOptions): Heliograph {
  const { baseUrl, apiKey, platformKey, fetch: given } = options;
  if (apiKey === undefined && platformKey === undefined) throw new TypeError('apiKey is missing');
  const { retries = 3, timeoutMs = 30_000, maxWaitMs = 60_000 } = options;
  const retry = { retries, timeoutMs, maxWaitMs };
  // Looked up with each request, so that a replaced global is used.
  const send = retryingFetch(given ?? ((input, init) => fetch(input, init)), retry);
  const clientOf = (key: string) => {
    const client = createClient({ baseUrl: addressOf(baseUrl), auth: key, fetch: send, throwOnError: true });
    client.interceptors.error.use((body, response) => errorOf(body, response));
    return client;
  };
  const platform =
    platformKey === undefined
      ? null
      : new HeliographPlatform({ client: clientOf(keyOf('platformKey', platformKey)) });
  const client = clientOf(apiKey === undefined ? '' : keyOf('apiKey', apiKey));
  return new Heliograph({ client, fetch: send, platform });
}

function addressOf(text: string): string {
  const address = text.trim();
  const isAddress = /^https?:\/\/[^\s"'<>]+$/i.test(address);
  if (!isAddress)
    throw new TypeError(`baseUrl must be like https://gateway.example, not ${JSON.stringify(text)}`);
  return address.replace(/\/+$/, '');
}

const KEYS = { apiKey: 'API key, which is ck_', platformKey: 'platform key, which is hp_' };

/** Keys from files and secrets end with a line break. The error of `fetch` for another one would show it. */
function keyOf(name: keyof typeof KEYS, text: string): string {
  const key = text.trim();
  if (/^[\x21\x23-\x26\x28-\x7e]+$/.test(key)) return key;
  throw new TypeError(`${name} is no ${KEYS[name]} and 64 hexadecimal digits`);
}
