import type { Config } from '../config/config.ts';
import {
  findProducts,
  listMessageTemplates,
  listPhoneNumbers,
  listSubscribedApps,
  listSubscribedFields,
  readPricing,
  type TemplateCall,
} from './graph-calls.ts';
import { type GraphConnection, graphGet, graphPost, openGraphConnection } from './graph-connection.ts';
import { noAnswer } from './graph-error.ts';
import {
  downloadMedia,
  lookUpMedia,
  type MediaUploadCall,
  UPLOAD_TIMEOUT_MS,
  uploadMedia,
} from './graph-media.ts';
import { type PassedCall, passOn } from './graph-pass.ts';
import { sendMessage } from './graph-send.ts';
import {
  type AppSync,
  exchangeCode,
  readNumberSetup,
  readTokenRights,
  readWabaName,
  registerNumber,
  type SignupApp,
  subscribeApp,
  syncBusinessApp,
} from './graph-setup.ts';

const SEND_CONNECTIONS = 256;

const ACCOUNT_CONNECTIONS = 32;
/** A page of templates is large. */
const WALK_TIMEOUT_MS = 30_000;
/** Within what a request of the External API may take. */
const ACCOUNT_TIMEOUT_MS = 10_000;

/** The calls that send messages: apart, because they wait longer and must not be held up by the others. */
export type SendClient = ReturnType<typeof openSendClient>;

/** Opens the client for messages; connections are made when they are needed, as with the clients below. */
export function openSendClient(config: Pick<Config, 'upstream' | 'sending'>) {
  const { timeoutMs } = config.sending;
  const limits = { connections: SEND_CONNECTIONS, answerTimeoutMs: timeoutMs };
  const connection = openGraphConnection(config.upstream, limits);
  return {
    /** `path` is the last part of the path of the call. */
    sendMessage: (phoneNumberId: string, payloadJson: string, token: string, path = 'messages') =>
      sendMessage(connection, { path, phoneNumberId, payloadJson, token, timeoutMs }),
    /** Throws GraphError. */
    listMessageTemplates: (wabaId: string, page: Omit<TemplateCall, 'timeoutMs'>) =>
      listMessageTemplates(connection, wabaId, { ...page, timeoutMs }),
    /** Throws GraphError; when its signal aborts, its reason. */
    uploadMedia: (call: Omit<MediaUploadCall, 'timeoutMs'>) =>
      uploadMedia(connection, { ...call, timeoutMs: UPLOAD_TIMEOUT_MS }),
    close: () => connection.agent.destroy(),
  };
}

/** The calls that the API makes while a tenant waits for the answer; each throws GraphError. */
export type AccountClient = ReturnType<typeof openAccountClient>;

export function openAccountClient(config: Pick<Config, 'upstream'>) {
  const timeoutMs = ACCOUNT_TIMEOUT_MS;
  const limits = { connections: ACCOUNT_CONNECTIONS, answerTimeoutMs: timeoutMs };
  const connection = openGraphConnection(config.upstream, limits);
  return {
    sendReadReceipt: (receipt: Omit<ReadReceipt, 'timeoutMs'>) =>
      sendReadReceipt(connection, { ...receipt, timeoutMs }),
    controlThread: (call: Omit<ThreadCall, 'timeoutMs'>) => controlThread(connection, { ...call, timeoutMs }),
    listMessageTemplates: (wabaId: string, page: Omit<TemplateCall, 'timeoutMs'>) =>
      listMessageTemplates(connection, wabaId, { ...page, timeoutMs }),
    lookUpPayment: (lookup: Omit<PaymentLookup, 'timeoutMs'>) =>
      lookUpPayment(connection, { ...lookup, timeoutMs }),
    listPhoneNumbers: (wabaId: string, token: string) => listPhoneNumbers(connection, wabaId, token),
    listSubscribedApps: (wabaId: string, token: string) => listSubscribedApps(connection, wabaId, token),
    listSubscribedFields: (appId: string, appSecret: string) =>
      listSubscribedFields(connection, appId, appSecret),
    exchangeCode: (app: SignupApp, code: string, redirectUri: string) =>
      exchangeCode(connection, app, { code, redirectUri, timeoutMs }),
    /** Passes a call of a tenant on as it is; the answer, whatever it says, is for the caller to judge. */
    passOn: (call: PassedCall) => passOn({ ...connection, upstream: config.upstream }, call, timeoutMs),
    close: () => connection.agent.destroy(),
  };
}

/** The calls that workers make; each throws GraphError and has its own time limit. */
export type GraphClient = ReturnType<typeof openGraphClient>;

export function openGraphClient(config: Pick<Config, 'upstream' | 'mode'>) {
  const connection = openGraphConnection(config.upstream);
  const { mediaHosts } = config.upstream;
  const rules = { mediaHosts, graphUrl: config.upstream.graphUrl, allowHttp: config.mode === 'development' };
  return {
    lookUpMedia: (mediaId: string, token: string, signal?: AbortSignal) =>
      lookUpMedia(connection, mediaId, token, signal),
    download: (address: string, token: string, signal?: AbortSignal) =>
      downloadMedia(connection, rules, address, token, signal),
    listPhoneNumbers: (wabaId: string, token: string) => listPhoneNumbers(connection, wabaId, token),
    listMessageTemplates: (wabaId: string, page: Omit<TemplateCall, 'timeoutMs'>) =>
      listMessageTemplates(connection, wabaId, { ...page, timeoutMs: WALK_TIMEOUT_MS }),
    readPricing: (wabaId: string, call: { from: Date; to: Date; token: string }) =>
      readPricing(connection, wabaId, { ...call, timeoutMs: WALK_TIMEOUT_MS }),
    findProducts: (catalogId: string, retailerIds: readonly string[], token: string, signal?: AbortSignal) =>
      findProducts(connection, catalogId, retailerIds, token, signal),
    listSubscribedApps: (wabaId: string, token: string) => listSubscribedApps(connection, wabaId, token),
    readTokenRights: (app: SignupApp, token: string) => readTokenRights(connection, app, token),
    readWabaName: (wabaId: string, token: string) => readWabaName(connection, wabaId, token),
    subscribeApp: (
      wabaId: string,
      token: string,
      override: { callbackUrl: string; verifyToken: string } | null,
    ) => subscribeApp(connection, wabaId, token, override),
    readNumberSetup: (phoneNumberId: string, token: string) =>
      readNumberSetup(connection, phoneNumberId, token),
    registerNumber: (phoneNumberId: string, token: string, pin: string) =>
      registerNumber(connection, phoneNumberId, token, pin),
    syncBusinessApp: (phoneNumberId: string, token: string, sync: AppSync) =>
      syncBusinessApp(connection, phoneNumberId, token, sync),
    close: () => connection.agent.destroy(),
  };
}

type PaymentLookup = {
  phoneNumberId: string;
  configuration: string;
  referenceId: string;
  token: string;
  timeoutMs: number;
};

/** What upstream knows of a payment: `GET /{phone}/payments/{configuration}/{reference id}`. Throws GraphError. */
async function lookUpPayment(
  connection: GraphConnection,
  { phoneNumberId, configuration, referenceId, token, timeoutMs }: PaymentLookup,
): Promise<unknown[]> {
  const path = [phoneNumberId, 'payments', configuration, referenceId];
  const { payments } = await graphGet(connection, { path, token, timeoutMs });
  return Array.isArray(payments) ? payments : [];
}

type ThreadCall = {
  phoneNumberId: string;
  body: Readonly<Record<string, unknown>>;
  token: string;
  timeoutMs: number;
};

/** Takes, passes or releases a conversation: `POST /{phone number id}/thread_control`. Throws GraphError. */
async function controlThread(
  connection: GraphConnection,
  { phoneNumberId, body, ...call }: ThreadCall,
): Promise<Record<string, unknown>> {
  const path = [phoneNumberId, 'thread_control'];
  return await graphPost(connection, {
    ...call,
    path,
    body: { messaging_product: 'whatsapp', ...body },
  });
}

type ReadReceipt = {
  phoneNumberId: string;
  upstreamId: string;
  /** Shows the customer that an answer is being written, for up to 25 s. */
  typingIndicator: boolean;
  token: string;
  timeoutMs: number;
};

/** Marks an inbound message, and those before it, as read: `POST /{phone number id}/messages`. Throws GraphError. */
async function sendReadReceipt(connection: GraphConnection, receipt: ReadReceipt): Promise<void> {
  const { phoneNumberId, upstreamId, typingIndicator, token, timeoutMs } = receipt;
  const { success } = await graphPost(connection, {
    path: [phoneNumberId, 'messages'],
    token,
    timeoutMs,
    body: {
      messaging_product: 'whatsapp',
      status: 'read',
      message_id: upstreamId,
      ...(typingIndicator && { typing_indicator: { type: 'text' } }),
    },
  });
  if (success !== true) throw noAnswer('its answer does not say success');
}
