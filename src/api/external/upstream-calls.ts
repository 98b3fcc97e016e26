import { AccessTokenProblem, openAccessToken } from '../../features/accounts/access-tokens.ts';
import { sendErrorAdvice } from '../../features/messages/send/upstream-errors.ts';
import type { Config } from '../../platform/config/config.ts';
import type { SealedDatabase } from '../../platform/crypto/sealed-database.ts';
import type { AccountClient } from '../../platform/graph/graph-client.ts';
import { GraphError } from '../../platform/graph/graph-error.ts';
import { ApiError } from '../errors/api-error.ts';

/** Opens the client for upstream with the first call: an API that makes none does not pay for it. */
export type UpstreamCalls = { client(): Promise<AccountClient>; close(): Promise<void> };

export function makeUpstreamCalls(config: Pick<Config, 'upstream'>): UpstreamCalls {
  let opening: Promise<AccountClient> | null = null;
  return {
    client: () => {
      opening ??= import('../../platform/graph/graph-client.ts').then((module) =>
        module.openAccountClient(config),
      );
      return opening;
    },
    close: async () => await (await opening)?.close(),
  };
}

/**
 * Calls upstream for a WABA while the tenant waits. Throws ApiError: 424 when upstream refuses or there is no token, 503
 * when it does not answer or is busy.
 */
export async function callUpstream<T>(
  { accounts, upstream }: { accounts: SealedDatabase; upstream: UpstreamCalls },
  wabaId: string,
  call: (client: AccountClient, token: string) => Promise<T>,
): Promise<T> {
  const token = await openAccessToken(accounts, wabaId).catch((error: unknown) => {
    if (error instanceof AccessTokenProblem) throw new ApiError('access_token_missing', { cause: error });
    throw error;
  });
  try {
    return await call(await upstream.client(), token);
  } catch (error) {
    throw error instanceof GraphError ? upstreamApiError(error) : error;
  }
}

const MIN_RETRY_AFTER_SECONDS = 2;
const MAX_UPSTREAM_ERROR_CHARS = 8_192;

function upstreamApiError(error: GraphError): ApiError {
  const { message, transient, retryAfterMs, code } = error;
  const upstream = smallEnough(error.upstream) ? { upstream: error.upstream } : {};
  if (transient) {
    const seconds = Math.max(MIN_RETRY_AFTER_SECONDS, Math.ceil((retryAfterMs ?? 0) / 1_000));
    const headers = { 'retry-after': String(seconds) };
    return new ApiError('upstream_unavailable', { message, headers, extras: upstream, cause: error });
  }
  const advice = sendErrorAdvice(code);
  return new ApiError('upstream_refused', {
    message: `The upstream platform refused the request: ${message}`,
    extras: { ...(advice !== null && { advice }), ...upstream },
    cause: error,
  });
}

function smallEnough(error: GraphError['upstream']): error is NonNullable<GraphError['upstream']> {
  return error !== null && JSON.stringify(error).length <= MAX_UPSTREAM_ERROR_CHARS;
}
