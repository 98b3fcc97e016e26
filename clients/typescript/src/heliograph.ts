import { type Download, type FileContent, type FileDescription, formOf } from './files.js';
import type { Client } from './generated/client/index.js';
import { HeliographApi, type Options } from './generated/sdk.gen.js';
import type {
  ListBroadcastRecipientsData,
  ListBroadcastsData,
  ListConversationMessagesData,
  ListConversationsData,
  ListEndpointAlertsData,
  ListErasuresData,
  ListEventsData,
  ListMessageTemplatesData,
  ListReplaysData,
  ListScheduledMessagesData,
  ListTemplatesData,
  ListWebhookEndpointsData,
  SearchConversationsData,
  SearchOptOutsData,
  UploadedMedia,
} from './generated/types.gen.js';
import { errorOf } from './heliograph-error.js';
import type { HeliographPlatform } from './heliograph-platform.js';
import { at, entriesOf } from './paging.js';

/**
 * The API with a method for each operation, and with what programs need around them: lists as iterators, and files as
 * streams. An iterator takes what its operation takes, and begins at `cursor` where one is given.
 */
export class Heliograph extends HeliographApi {
  readonly #fetch: typeof fetch;
  readonly #platform: HeliographPlatform | null;

  constructor(given: { client: Client; fetch: typeof fetch; platform?: HeliographPlatform | null }) {
    super({ client: given.client });
    this.#fetch = given.fetch;
    this.#platform = given.platform ?? null;
  }

  /** The platform API, for the operator's own program. Throws `TypeError` for a client without a `platformKey`. */
  get platform(): HeliographPlatform {
    if (this.#platform === null)
      throw new TypeError('give createHeliograph a platformKey, which is hp_ and 64 hexadecimal digits');
    return this.#platform;
  }

  /** Every conversation of `listConversations`. */
  eachConversation(options: Options<ListConversationsData, true> = {}) {
    const { query } = options;
    return entriesOf((cursor) => this.listConversations(at(options, query, cursor)), query?.cursor);
  }

  /** Every conversation of `searchConversations`. */
  eachFoundConversation(options: Options<SearchConversationsData, true>) {
    const { body } = options;
    const pageAt = (cursor?: string) =>
      this.searchConversations({ ...options, body: { ...body, ...(cursor !== undefined && { cursor }) } });
    return entriesOf(pageAt, body?.cursor);
  }

  /** Every message of `listConversationMessages`. */
  eachConversationMessage(options: Options<ListConversationMessagesData, true>) {
    const { query } = options;
    return entriesOf((cursor) => this.listConversationMessages(at(options, query, cursor)), query?.cursor);
  }

  /** Every event of `listEvents`. */
  eachEvent(options: Options<ListEventsData, true> = {}) {
    const { query } = options;
    return entriesOf((cursor) => this.listEvents(at(options, query, cursor)), query?.cursor);
  }

  /** Every replay of `listReplays`. */
  eachReplay(options: Options<ListReplaysData, true> = {}) {
    const { query } = options;
    return entriesOf((cursor) => this.listReplays(at(options, query, cursor)), query?.cursor);
  }

  /** Every endpoint of `listWebhookEndpoints`. */
  eachWebhookEndpoint(options: Options<ListWebhookEndpointsData, true> = {}) {
    const { query } = options;
    return entriesOf((cursor) => this.listWebhookEndpoints(at(options, query, cursor)), query?.cursor);
  }

  /** Every alert of `listEndpointAlerts`. */
  eachEndpointAlert(options: Options<ListEndpointAlertsData, true> = {}) {
    const { query } = options;
    return entriesOf((cursor) => this.listEndpointAlerts(at(options, query, cursor)), query?.cursor);
  }

  /** Every template of `listTemplates`. */
  eachTemplate(options: Options<ListTemplatesData, true> = {}) {
    const { query } = options;
    return entriesOf((cursor) => this.listTemplates(at(options, query, cursor)), query?.cursor);
  }

  /** Every message template of `listMessageTemplates`. */
  eachMessageTemplate(options: Options<ListMessageTemplatesData, true> = {}) {
    const { query } = options;
    return entriesOf((cursor) => this.listMessageTemplates(at(options, query, cursor)), query?.cursor);
  }

  /** Every scheduled message of `listScheduledMessages`. */
  eachScheduledMessage(options: Options<ListScheduledMessagesData, true> = {}) {
    const { query } = options;
    return entriesOf((cursor) => this.listScheduledMessages(at(options, query, cursor)), query?.cursor);
  }

  /** Every broadcast of `listBroadcasts`. */
  eachBroadcast(options: Options<ListBroadcastsData, true> = {}) {
    const { query } = options;
    return entriesOf((cursor) => this.listBroadcasts(at(options, query, cursor)), query?.cursor);
  }

  /** Every recipient of `listBroadcastRecipients`. */
  eachBroadcastRecipient(options: Options<ListBroadcastRecipientsData, true>) {
    const { query } = options;
    return entriesOf((cursor) => this.listBroadcastRecipients(at(options, query, cursor)), query?.cursor);
  }

  /** Every opt-out of `searchOptOuts`. */
  eachOptOut(options: Options<SearchOptOutsData, true> = {}) {
    const { body } = options;
    return entriesOf(
      (cursor) => this.searchOptOuts({ ...options, body: { ...body, ...(cursor && { cursor }) } }),
      body?.cursor,
    );
  }

  /** Every erasure of `listErasures`. */
  eachErasure(options: Options<ListErasuresData, true> = {}) {
    const { query } = options;
    return entriesOf((cursor) => this.listErasures(at(options, query, cursor)), query?.cursor);
  }

  /**
   * Uploads a file that is sent while it is read. Browsers send streams over HTTP/2 only, and some not at all: there, use
   * `uploadMedia`. A broken upload is not repeated.
   */
  async uploadFile(
    content: FileContent,
    { signal, ...description }: FileDescription & { signal?: AbortSignal } = {},
  ): Promise<UploadedMedia> {
    const { body, contentType } = formOf(content, description);
    const options = {
      url: '/api/external/media',
      security: [{ scheme: 'bearer', type: 'http' }] as const,
      headers: { 'Content-Type': contentType },
      body,
      bodySerializer: null,
      duplex: 'half',
      ...(signal !== undefined && { signal }),
    };
    const { data } = await this.client.post<{ 201: UploadedMedia }, unknown, true>(options);
    return data;
  }

  /** The file behind a `mediaUrl` of an event or a message, as a stream. The API key is not sent there. */
  async downloadMedia(mediaUrl: string, { signal }: { signal?: AbortSignal } = {}): Promise<Download> {
    const response = await this.#fetch(mediaUrl, signal === undefined ? {} : { signal });
    if (!response.ok || response.body === null) {
      const text = await response.text();
      throw errorOf(jsonOf(text), response);
    }
    const size = response.headers.get('content-length');
    return {
      body: response.body,
      mimeType: response.headers.get('content-type'),
      sizeBytes: size === null ? null : Number(size),
    };
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
