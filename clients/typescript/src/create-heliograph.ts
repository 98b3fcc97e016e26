import { createClient } from './generated/client/index.js';
import { HeliographApi } from './generated/sdk.gen.js';
import { errorOf } from './heliograph-error.js';

/** Where the service is, and for whom to speak. */
export type HeliographOptions = {
  /** For example `https://gateway.example`. */
  baseUrl: string;
  /** `ck_` and 64 hexadecimal digits; it belongs to one WABA. */
  apiKey: string;
  /** Takes the place of the global `fetch`. */
  fetch?: typeof fetch;
};

/**
 * A client with a method for each operation of the External API. They resolve with `data` and `response`; they throw
 * `HeliographError` for an error answer, and what `fetch` throws when there is no answer. Nothing is repeated by itself.
 */
export function createHeliograph({ baseUrl, apiKey, ...options }: HeliographOptions): HeliographApi {
  const client = createClient({
    ...options,
    baseUrl: baseUrl.replace(/\/+$/, ''),
    auth: apiKey,
    throwOnError: true,
  });
  client.interceptors.error.use((body, response) => errorOf(body, response));
  return new HeliographApi({ client });
}
