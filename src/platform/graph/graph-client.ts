import type { Config } from '../config/config.ts';
import { type CatalogProduct, findProducts } from './catalog-products.ts';
import { openGraphConnection } from './graph-connection.ts';
import { downloadMedia, type MediaDownload } from './media-download.ts';
import { lookUpMedia, type MediaMetadata } from './media-lookup.ts';
import { type MediaUploadCall, uploadMedia } from './media-upload.ts';
import { listMessageTemplates, type TemplateFilter, type TemplatePage } from './message-templates.ts';
import { lookUpPayment, type PaymentLookup } from './payment-lookup.ts';
import { listPhoneNumbers, type UpstreamPhoneNumber } from './phone-numbers.ts';
import { type ReadReceipt, sendReadReceipt } from './read-receipt.ts';
import { type SendOutcome, sendMessage } from './send-message.ts';
import { listSubscribedApps, type SubscribedApp } from './subscribed-apps.ts';

/** The calls to the upstream platform's Graph API; each throws GraphError and has a time limit of its own. */
export type GraphClient = {
  lookUpMedia(mediaId: string, token: string, signal?: AbortSignal): Promise<MediaMetadata>;
  download(address: string, token: string, signal?: AbortSignal): Promise<MediaDownload>;
  listPhoneNumbers(wabaId: string, token: string): Promise<UpstreamPhoneNumber[]>;
  findProducts(
    catalogId: string,
    retailerIds: readonly string[],
    token: string,
    signal?: AbortSignal,
  ): Promise<CatalogProduct[]>;
  close(): Promise<void>;
};

/** The calls that send messages: apart, because they wait longer and must not be held up by the others. */
export type SendClient = {
  sendMessage(phoneNumberId: string, payloadJson: string, token: string): Promise<SendOutcome>;
  /** Throws GraphError; when its signal aborts, its reason. */
  uploadMedia(call: Omit<MediaUploadCall, 'timeoutMs'>): Promise<string>;
  close(): Promise<void>;
};

/** The calls that the API makes while a tenant waits for the answer; each throws GraphError. */
export type AccountClient = {
  sendReadReceipt(receipt: Omit<ReadReceipt, 'timeoutMs'>): Promise<void>;
  listMessageTemplates(
    wabaId: string,
    page: { filter: TemplateFilter; limit: number; after: string | null; token: string },
  ): Promise<TemplatePage>;
  lookUpPayment(lookup: Omit<PaymentLookup, 'timeoutMs'>): Promise<unknown[]>;
  listPhoneNumbers(wabaId: string, token: string): Promise<UpstreamPhoneNumber[]>;
  listSubscribedApps(wabaId: string, token: string): Promise<SubscribedApp[]>;
  close(): Promise<void>;
};

const SEND_CONNECTIONS = 256;
/** Within what an activity may take. */
const UPLOAD_TIMEOUT_MS = 90_000;
const ACCOUNT_CONNECTIONS = 32;
/** Within what a request of the External API may take. */
const ACCOUNT_TIMEOUT_MS = 10_000;

/** Opens the client for messages; connections are made when they are needed. */
export function openSendClient(config: Pick<Config, 'upstream' | 'sending'>): SendClient {
  const { timeoutMs } = config.sending;
  const limits = { connections: SEND_CONNECTIONS, answerTimeoutMs: timeoutMs };
  const connection = openGraphConnection(config.upstream, limits);
  return {
    sendMessage: (phoneNumberId, payloadJson, token) =>
      sendMessage(connection, { phoneNumberId, payloadJson, token, timeoutMs }),
    uploadMedia: (call) => uploadMedia(connection, { ...call, timeoutMs: UPLOAD_TIMEOUT_MS }),
    close: () => connection.agent.destroy(),
  };
}

/** Opens the client for the API; connections are made when they are needed. */
export function openAccountClient(config: Pick<Config, 'upstream'>): AccountClient {
  const timeoutMs = ACCOUNT_TIMEOUT_MS;
  const limits = { connections: ACCOUNT_CONNECTIONS, answerTimeoutMs: timeoutMs };
  const connection = openGraphConnection(config.upstream, limits);
  return {
    sendReadReceipt: (receipt) => sendReadReceipt(connection, { ...receipt, timeoutMs }),
    listMessageTemplates: (wabaId, page) => listMessageTemplates(connection, wabaId, { ...page, timeoutMs }),
    lookUpPayment: (lookup) => lookUpPayment(connection, { ...lookup, timeoutMs }),
    listPhoneNumbers: (wabaId, token) => listPhoneNumbers(connection, wabaId, token),
    listSubscribedApps: (wabaId, token) => listSubscribedApps(connection, wabaId, token),
    close: () => connection.agent.destroy(),
  };
}

/** Opens the client; connections are made when they are needed. */
export function openGraphClient(config: Pick<Config, 'upstream' | 'mode'>): GraphClient {
  const connection = openGraphConnection(config.upstream);
  const rules = { mediaHosts: config.upstream.mediaHosts, allowHttp: config.mode === 'development' };
  return {
    lookUpMedia: (mediaId, token, signal) => lookUpMedia(connection, mediaId, token, signal),
    download: (address, token, signal) => downloadMedia(connection, rules, address, token, signal),
    listPhoneNumbers: (wabaId, token) => listPhoneNumbers(connection, wabaId, token),
    findProducts: (catalogId, retailerIds, token, signal) =>
      findProducts(connection, catalogId, retailerIds, token, signal),
    close: () => connection.agent.destroy(),
  };
}
