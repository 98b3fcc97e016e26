import type { Account } from './account.ts';
import { type ErrorBody, messageOf } from './api-error.ts';
import { EXIT, Failure, networkProblem } from './failure.ts';

type Query = Readonly<Record<string, string | undefined>>;

type Request = {
  query?: Query;
  body?: unknown;
  /** The body as JSON text, sent as it is: to read and write it would change numbers. */
  json?: string;
  headers?: Readonly<Record<string, string>>;
};

/** The External API with the key of an account. */
export type ApiClient = {
  account: Account;
  /** Whether something was read that should be a response of the service. */
  hasResponded(): boolean;
  /** The body of a successful response. Throws Failure with the exit code of what went wrong. */
  call<T>(method: 'GET' | 'POST' | 'PUT' | 'PATCH', path: string, request?: Request): Promise<T>;
  /** The response to GET, successful or not, with its body still to be read. Throws what `fetch` throws. */
  open(path: string, request: Request, signal: AbortSignal): Promise<Response>;
};

/** Sends wait for their turn for 10 seconds, tests for 8. */
const TIMEOUT_MS = 30_000;
const MAX_WAITS = 3;
const MAX_WAIT_SECONDS = 15;

export function makeApiClient(account: Account): ApiClient {
  let hasResponded = false;
  const send = (
    method: string,
    path: string,
    { query = {}, body, json = JSON.stringify(body), headers }: Request,
    signal: AbortSignal,
  ) => {
    const url = new URL(`${account.url}${path}`);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, value);
    return fetch(url, {
      method,
      redirect: 'error',
      headers: {
        authorization: `Bearer ${account.apiKey}`,
        'user-agent': 'heliograph-cli',
        ...(json !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(json !== undefined && { body: json }),
      signal,
    });
  };
  return {
    account,
    hasResponded: () => hasResponded,
    async call<T>(method: 'GET' | 'POST' | 'PUT' | 'PATCH', path: string, request: Request = {}): Promise<T> {
      for (let waits = 0; ; waits += 1) {
        const response = await send(method, path, request, AbortSignal.timeout(TIMEOUT_MS)).catch(
          unreachable(account),
        );
        const text = await response.text().catch(unreachable(account));
        hasResponded = true;
        if (response.ok) return parsed(text, account) as T;
        const waitSeconds = Number(response.headers.get('retry-after') ?? Number.NaN);
        const mayWait = response.status === 429 && waits < MAX_WAITS && waitSeconds <= MAX_WAIT_SECONDS;
        if (!mayWait) throw refused(response.status, text, account);
        await new Promise((resolve) => setTimeout(resolve, waitSeconds * 1_000));
      }
    },
    async open(path, request, signal) {
      const response = await send('GET', path, request, signal);
      hasResponded = true;
      return response;
    },
  };
}

/** Turns what `fetch` throws into a Failure. */
export function unreachable({ url }: Account) {
  return (error: unknown): never => {
    throw new Failure(EXIT.unreachable, `${url} cannot be reached: ${networkProblem(error)}.`, {
      cause: error,
    });
  };
}

function parsed(text: string, { url }: Account): unknown {
  try {
    return text === '' ? null : JSON.parse(text);
  } catch {
    throw new Failure(EXIT.unreachable, `${url} responded, but not as Heliograph does: is the URL right?`);
  }
}

/** The failure that an error response means. */
export function refused(status: number, text: string, { url }: Account): Failure {
  let body: ErrorBody | null = null;
  try {
    body = JSON.parse(text) as ErrorBody;
  } catch {
    // It is not the service that responded.
  }
  const message = messageOf(body);
  if (message === null) {
    return new Failure(
      EXIT.unreachable,
      `${url} responded with HTTP ${status}, but not as Heliograph does: is the URL right?`,
    );
  }
  const code = { code: body?.error?.code ?? '' };
  if (status === 401)
    return new Failure(EXIT.key, `${message} Run "heliograph login" with a key that is valid.`, code);
  if (status === 403) return new Failure(EXIT.key, message, code);
  if (status === 503) return new Failure(EXIT.unreachable, `${message} Try again in a moment.`, code);
  return new Failure(EXIT.refused, message, code);
}
