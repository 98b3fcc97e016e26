import type { Config } from '../config/config.ts';
import { type CatalogProduct, findProducts } from './catalog-products.ts';
import { openGraphConnection } from './graph-connection.ts';
import { downloadMedia, type MediaDownload } from './media-download.ts';
import { lookUpMedia, type MediaMetadata } from './media-lookup.ts';
import { listPhoneNumbers, type UpstreamPhoneNumber } from './phone-numbers.ts';
import { type SendOutcome, sendMessage } from './send-message.ts';

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

/** The call that sends messages: apart, because it waits longer and must not be held up by the others. */
export type SendClient = {
  sendMessage(phoneNumberId: string, payloadJson: string, token: string): Promise<SendOutcome>;
  close(): Promise<void>;
};

const SEND_CONNECTIONS = 256;

/** Opens the client for messages; connections are made when they are needed. */
export function openSendClient(config: Pick<Config, 'upstream' | 'sending'>): SendClient {
  const { timeoutMs } = config.sending;
  const limits = { connections: SEND_CONNECTIONS, answerTimeoutMs: timeoutMs };
  const connection = openGraphConnection(config.upstream, limits);
  return {
    sendMessage: (phoneNumberId, payloadJson, token) =>
      sendMessage(connection, { phoneNumberId, payloadJson, token, timeoutMs }),
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
