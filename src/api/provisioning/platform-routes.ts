import type { FastifyInstance } from 'fastify';
import { policyDefaults } from '../../features/accounts/tenant-policies.ts';
import { PLATFORM_SCOPES } from '../../features/keys/platform-key-store.ts';
import { mailerOf } from '../../features/mail/mails.ts';
import { readIdempotencyKey } from '../../features/messages/send/idempotency-keys.ts';
import type { Config } from '../../platform/config/config.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { ApiError } from '../errors/api-error.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { makeUpstreamCalls } from '../external/upstream-calls.ts';
import type { KeyTools } from '../keys/api-key-auth.ts';
import { platformDocumentRoute } from '../openapi/document-routes.ts';
import { addRoute } from '../operations/operation-route.ts';
import { refuseNullBody, refuseWhileClosing, requireStorableValues } from '../plugins/request-hooks.ts';
import { operatorAddress } from '../portal/access/operator-address.ts';
import { createRequestLimits } from '../rate-limits/request-limits.ts';
import { guardBodies } from '../shares/client-shares.ts';
import { PLATFORM_OPERATIONS } from './operations.ts';
import { platformActorOf, platformKeyOf, requirePlatformKey } from './platform-key-auth.ts';
import type { PlatformCall } from './platform-operation.ts';

const HANDLER_TIMEOUT_MS = 30_000;
const BODY_BYTES = 64 * 1024;
const BODY_LIMITS = {
  maxBytes: 4 * 1024 * 1024,
  maxBytesPerOwner: 1024 * 1024,
  untilAnswered: true,
} as const;

export type PlatformContext = Omit<KeyTools, 'limits'> &
  Pick<ExternalContext, 'accounts' | 'cursors' | 'publicUrl'> & {
    config: Config;
    isOperatorListener: boolean;
    limitsDatabase: Database;
  };

/** `/api/platform`: for the operator's own program, where operators' pages are, with a platform key. */
export async function platformRoutes(scope: FastifyInstance, context: PlatformContext): Promise<void> {
  const { config, isOperatorListener } = context;
  const limits = createRequestLimits(context.limitsDatabase, platformRates(config.api.rateLimits), scope.log);
  const upstream = makeUpstreamCalls(config);
  const { portal } = config;
  const mailer = mailerOf(config, context.accounts.secretBox);
  const hasSignup = config.upstream.signup !== null;
  const defaults = policyDefaults(config);
  const shared = { ...context, upstream, portal, hasSignup, mailer, policyDefaults: defaults };
  const networks = { operatorCidrs: config.api.platformCidrs, operatorListen: portal.operatorListen };
  const isHere = operatorAddress(networks, isOperatorListener);
  scope.addHook('onRoute', (route) => {
    route.handlerTimeout ??= HANDLER_TIMEOUT_MS;
    route.bodyLimit ??= BODY_BYTES;
  });
  scope.addHook('onClose', async () => {
    limits.close();
    await upstream.close();
  });
  scope.addHook('onRequest', async (request) => {
    if (!isHere(request)) throw new ApiError('route_not_found');
  });
  refuseWhileClosing(scope);
  guardBodies(scope, BODY_LIMITS);
  refuseNullBody(scope);
  requireStorableValues(scope);
  platformDocumentRoute(scope);
  await scope.register(async (secured: ExternalApp) => {
    requirePlatformKey(secured as unknown as FastifyInstance, { ...context, limits });
    for (const operation of PLATFORM_OPERATIONS) {
      const { scope: wanted } = operation;
      const platformScopes = wanted === 'any' ? PLATFORM_SCOPES : [wanted];
      addRoute(secured, operation, { platformScopes }, (request): PlatformCall => {
        const tools = { ...context.accounts, actor: platformActorOf(request) };
        const given = operation.idempotent === true ? readIdempotencyKey(request, operation.id) : null;
        return { ...shared, tools, key: platformKeyOf(request), idempotencyKey: given?.key ?? null };
      });
    }
  });
}

const PLATFORM_REQUESTS_PER_SECOND = 20;

/** Where the installation limits no requests, of a test, these are not limited either. */
function platformRates(rates: Config['api']['rateLimits']): Config['api']['rateLimits'] {
  const limited = (rate: number) => (rate === 0 ? 0 : PLATFORM_REQUESTS_PER_SECOND);
  const { readsPerSecond, writesPerSecond } = rates;
  return { ...rates, readsPerSecond: limited(readsPerSecond), writesPerSecond: limited(writesPerSecond) };
}
