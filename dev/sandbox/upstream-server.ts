import fastify, { type FastifyInstance, LogController } from 'fastify';
import { createAccountObjects } from './account-objects.ts';
import { createBill } from './bill.ts';
import { createChatLog } from './chat-log.ts';
import { controlApi } from './control/control-api.ts';
import { createPhoneDirectory } from './demo-accounts.ts';
import { createFaultRegister } from './fault-register.ts';
import { graphApi } from './graph/graph-api.ts';
import { DEMO_TEMPLATES } from './graph/message-templates.ts';
import { signupDialog } from './graph/signup-dialog.ts';
import { createGroupRegister } from './group-register.ts';
import { requireDevelopment, requireLoopback } from './loopback-only.ts';
import { createMediaStore } from './media-store.ts';
import { createMediaUrls } from './media-url.ts';
import { createRegistrationRegister } from './registration-register.ts';
import { createRoutingRegister } from './routing-roles.ts';
import { createSignupRegister } from './signup-register.ts';
import { createStatusLadder } from './status-ladder.ts';
import { createUploadSessions } from './upload-sessions.ts';
import type { UpstreamContext } from './upstream-context.ts';
import { createBoundedList, MAX_LOGGED_REQUESTS, MAX_SENT_MESSAGES } from './upstream-records.ts';
import { createWebhookSender } from './upstream-webhook-sender.ts';

/** How to run the stand-in platform. */
export type UpstreamServerConfig = {
  /** A loopback address. */
  host: string;
  /** 0 picks a free port. */
  port: number;
  appSecret: string;
  verifyToken: string;
  /** Where webhooks go, without a path. */
  ingressUrl: string;
  /** The only access token that is accepted; without it any Bearer token is. */
  accessToken?: string;
  /** Between the statuses of one message, 300 unless told. */
  statusDelayMs?: number;
  /** Of a media download address, 5 minutes unless told. */
  mediaUrlLifetimeMs?: number;
  /** Level of the log on standard output; silent unless told. */
  logLevel?: string;
  /** The clock, milliseconds since 1970; for tests. */
  now?: () => number;
};

/** A running server. */
export type RunningServer = { url: string; close: () => Promise<void> };

const DEFAULT_STATUS_DELAY_MS = 300;
const DEFAULT_MEDIA_URL_LIFETIME_MS = 5 * 60 * 1000;
const MAX_BODY_BYTES = 16 * 1024 * 1024;

function createContext(
  config: UpstreamServerConfig,
  app: FastifyInstance,
  runtime: { baseUrl: () => string; signal: AbortSignal },
): UpstreamContext {
  const now = config.now ?? Date.now;
  const sender = createWebhookSender(config);
  const chat = createChatLog(now);
  const bill = createBill();
  const phones = createPhoneDirectory();
  const delayMs = config.statusDelayMs ?? DEFAULT_STATUS_DELAY_MS;
  return {
    ...(config.accessToken === undefined ? {} : { accessToken: config.accessToken }),
    appSecret: config.appSecret,
    callbackUrl: `${config.ingressUrl}/upstream/webhook`,
    phones,
    faults: createFaultRegister(),
    requests: createBoundedList(MAX_LOGGED_REQUESTS),
    sent: createBoundedList(MAX_SENT_MESSAGES),
    receipts: createBoundedList(MAX_SENT_MESSAGES),
    bill,
    chat,
    groups: createGroupRegister(now),
    objects: createAccountObjects(DEMO_TEMPLATES),
    uploads: createUploadSessions(),
    media: createMediaStore(now),
    mediaUrls: createMediaUrls({
      baseUrl: runtime.baseUrl,
      secret: config.appSecret,
      lifetimeMs: config.mediaUrlLifetimeMs ?? DEFAULT_MEDIA_URL_LIFETIME_MS,
      now,
    }),
    routing: createRoutingRegister(),
    signup: createSignupRegister(phones, now),
    registrations: createRegistrationRegister(phones, now),
    sender,
    ladder: createStatusLadder({ sender, bill, chat, delayMs, signal: runtime.signal, now, log: app.log }),
    signal: runtime.signal,
  };
}

/**
 * Starts the stand-in for the upstream platform: its Graph API, and a control API below /sandbox.
 * @throws SandboxRefusedError in production mode and for hosts other than loopback.
 */
export async function startUpstreamServer(config: UpstreamServerConfig): Promise<RunningServer> {
  requireDevelopment();
  requireLoopback(config.host);
  const stopping = new AbortController();
  const app = fastify({
    logger: { level: config.logLevel ?? 'silent' },
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: MAX_BODY_BYTES,
    forceCloseConnections: true,
    routerOptions: { maxParamLength: 500 },
    ajv: { customOptions: { removeAdditional: false, coerceTypes: false } },
  });
  let url = '';
  const context = createContext(config, app, { baseUrl: () => url, signal: stopping.signal });
  await app.register((scope) => graphApi(scope, context));
  await app.register((scope) => signupDialog(scope, context));
  await app.register((scope) => controlApi(scope, context));
  url = await app.listen({ host: config.host, port: config.port });
  return {
    url,
    close: async () => {
      stopping.abort();
      await app.close();
      await context.ladder.settled();
      await context.sender.close();
    },
  };
}
