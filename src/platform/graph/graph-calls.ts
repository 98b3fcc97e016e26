import { isMembers, listOf, membersOf, textOf } from '../json/json-members.ts';
import { type GraphConnection, graphGet } from './graph-connection.ts';
import { noAnswer } from './graph-error.ts';

/** A phone number of a WABA as upstream describes it; its enumerations differ between documents, so all are text. */
export type UpstreamPhoneNumber = {
  phoneNumberId: string;
  displayPhoneNumber: string;
  verifiedName: string;
  qualityRating: string | null;
  /** `STANDARD`, `HIGH` or others; null: upstream says nothing. */
  throughput: string | null;
  /** Used in the WhatsApp Business app too. */
  isInApp: boolean;
};

const NUMBERS_PER_PAGE = 100;
const MAX_PAGES = 20;

/** All phone numbers of a WABA: `GET /{waba}/phone_numbers`, page by page. Throws GraphError. */
export async function listPhoneNumbers(
  connection: GraphConnection,
  wabaId: string,
  token: string,
): Promise<UpstreamPhoneNumber[]> {
  const numbers: UpstreamPhoneNumber[] = [];
  let after: string | null = null;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const answer = await graphGet(connection, {
      path: [wabaId, 'phone_numbers'],
      query: {
        fields: 'id,display_phone_number,verified_name,quality_rating,throughput,is_on_biz_app',
        limit: String(NUMBERS_PER_PAGE),
        ...(after === null ? {} : { after }),
      },
      token,
    });
    const { data } = answer;
    // An answer without a list must not pass for a WABA without numbers.
    if (!Array.isArray(data)) throw noAnswer('it lists no phone numbers');
    numbers.push(...data.flatMap(phoneNumberOf));
    after = nextCursor(answer.paging);
    if (after === null) break;
  }
  return numbers;
}

function phoneNumberOf(value: unknown): UpstreamPhoneNumber[] {
  const { id, display_phone_number, verified_name, quality_rating, ...more } = membersOf(value);
  if (typeof id !== 'string' || id === '') return [];
  return [
    {
      phoneNumberId: id,
      displayPhoneNumber: textOr(display_phone_number, ''),
      verifiedName: textOr(verified_name, ''),
      qualityRating: textOr(quality_rating, null),
      throughput: textOr(membersOf(more.throughput).level, null),
      isInApp: more.is_on_biz_app === true,
    },
  ];
}

function textOr<Fallback>(value: unknown, fallback: Fallback): string | Fallback {
  return typeof value === 'string' ? value : fallback;
}

export type SubscribedApp = { id: string; name: string; overrideCallbackUrl: string | null };

/** The apps that are subscribed to a WABA: `GET /{waba}/subscribed_apps`. Throws GraphError. */
export async function listSubscribedApps(
  connection: GraphConnection,
  wabaId: string,
  token: string,
): Promise<SubscribedApp[]> {
  const { data } = await graphGet(connection, { path: [wabaId, 'subscribed_apps'], query: {}, token });
  return Array.isArray(data) ? data.map(appOf) : [];
}

function appOf(value: unknown): SubscribedApp {
  const entry = membersOf(value);
  const app = membersOf(entry.whatsapp_business_api_data);
  return {
    id: textOf(app.id),
    name: textOf(app.name),
    overrideCallbackUrl: textOf(entry.override_callback_uri) || null,
  };
}

/**
 * The webhook fields that an app subscribes to: `GET /{app}/subscriptions`, with the app's own token, which its id and its secret make; null: to none
 * of WhatsApp. Throws GraphError.
 */
export async function listSubscribedFields(
  connection: GraphConnection,
  appId: string,
  appSecret: string,
): Promise<string[] | null> {
  const path = [appId, 'subscriptions'];
  const { data } = await graphGet(connection, { path, token: `${appId}|${appSecret}` });
  const found = listOf(data).find(({ object }) => object === 'whatsapp_business_account');
  if (found === undefined || found.active === false) return null;
  return listOf(found.fields).map(({ name }) => textOf(name));
}

export type TemplateFilter = Partial<Record<'name' | 'status' | 'category' | 'language', string>>;

export type TemplatePage = {
  templates: Record<string, unknown>[];
  /** Upstream's cursor of the next page; null on the last. */
  after: string | null;
};

/** A template with examples has several KiB, and a page a hundred of them. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

export type TemplateCall = {
  filter: TemplateFilter;
  /** Names with commas; upstream's own choice unless given. */
  fields?: string;
  limit: number;
  after: string | null;
  token: string;
  timeoutMs: number;
};

/** One page of the message templates of a WABA: `GET /{waba}/message_templates`. Throws GraphError. */
export async function listMessageTemplates(
  connection: GraphConnection,
  wabaId: string,
  page: TemplateCall,
): Promise<TemplatePage> {
  const { filter, fields, limit, after, token, timeoutMs } = page;
  const { data, paging } = await graphGet(connection, {
    path: [wabaId, 'message_templates'],
    query: {
      ...filter,
      ...(fields !== undefined && { fields }),
      limit: String(limit),
      ...(after !== null && { after }),
    },
    token,
    timeoutMs,
    maxAnswerBytes: MAX_ANSWER_BYTES,
  });
  return { templates: Array.isArray(data) ? data.filter(isMembers) : [], after: nextCursor(paging) };
}

/** What upstream says that it charges for the messages of half an hour, as its members say it. */
type PricingPoint = {
  startMs: number;
  /** Digits. */
  displayPhoneNumber: string;
  country: string;
  category: string;
  pricingType: string;
  volume: number;
  /** Approximate, in the currency of the account; null: upstream reports none. */
  cost: number | null;
};

export type PricingReport = { currency: string | null; points: PricingPoint[] };

const PRICING_FIELDS =
  'granularity(HALF_HOUR).metric_types(["COST","VOLUME"]).dimensions(["COUNTRY","PHONE","PRICING_CATEGORY","PRICING_TYPE"])';

/** What upstream charges for messages from one time to another: `GET /{waba}?fields=currency,pricing_analytics…`. Throws GraphError. */
export async function readPricing(
  connection: GraphConnection,
  wabaId: string,
  { from, to, token, timeoutMs }: { from: Date; to: Date; token: string; timeoutMs: number },
): Promise<PricingReport> {
  const seconds = (time: Date) => Math.floor(time.getTime() / 1_000);
  const fields = `currency,pricing_analytics.start(${seconds(from)}).end(${seconds(to)}).${PRICING_FIELDS}`;
  const answer = await graphGet(connection, {
    path: [wabaId],
    query: { fields },
    token,
    timeoutMs,
    maxAnswerBytes: MAX_ANSWER_BYTES,
  });
  const { data } = membersOf(answer.pricing_analytics);
  const lists = Array.isArray(data) ? data.map((one) => membersOf(one).data_points) : [];
  const points = lists.flatMap((list) => (Array.isArray(list) ? list.flatMap(pricingPointOf) : []));
  return { currency: textOr(answer.currency, null), points };
}

function pricingPointOf(value: unknown): PricingPoint[] {
  const { start, volume, cost, phone_number, country, pricing_category, pricing_type } = membersOf(value);
  if (typeof start !== 'number' || !Number.isSafeInteger(volume)) return [];
  return [
    {
      startMs: start * 1_000,
      displayPhoneNumber: textOr(phone_number, '').replaceAll(/\D/g, ''),
      country: textOr(country, ''),
      category: textOr(pricing_category, ''),
      pricingType: textOr(pricing_type, ''),
      volume: Number(volume),
      cost: typeof cost === 'number' ? cost : null,
    },
  ];
}

/** There is a next page only when upstream gives its address; the cursors are there on the last page too. */
function nextCursor(paging: unknown): string | null {
  const { next, cursors } = membersOf(paging);
  return next === undefined ? null : textOr(membersOf(cursors).after, '') || null;
}

export type CatalogProduct = { retailerId: string; name: string | null; imageUrl: string | null };

/** Keeps the address of one call short enough for every proxy. */
const MAX_FILTER_CHARS = 4_000;
const MAX_IDS_PER_CALL = 50;
const PRODUCTS_PER_PAGE = 100;

/**
 * The products of a catalog with these retailer ids; unknown ones are absent. Several calls when there are many.
 * Throws GraphError; when `signal` aborts, its reason.
 */
export async function findProducts(
  connection: GraphConnection,
  catalogId: string,
  retailerIds: readonly string[],
  token: string,
  signal?: AbortSignal,
): Promise<CatalogProduct[]> {
  const products: CatalogProduct[] = [];
  for (const ids of batchesOf(retailerIds)) {
    const { data } = await graphGet(connection, {
      path: [catalogId, 'products'],
      query: {
        fields: 'id,retailer_id,name,image_url',
        filter: JSON.stringify({ retailer_id: { is_any: ids } }),
        limit: String(PRODUCTS_PER_PAGE),
      },
      token,
      signal,
    });
    products.push(...(Array.isArray(data) ? data.flatMap(productOf) : []));
  }
  return products;
}

function batchesOf(retailerIds: readonly string[]): string[][] {
  const batches: string[][] = [];
  let current: string[] = [];
  let currentChars = 0;
  for (const id of retailerIds) {
    const chars = encodeURIComponent(id.toWellFormed()).length + 10;
    if (
      current.length > 0 &&
      (current.length === MAX_IDS_PER_CALL || currentChars + chars > MAX_FILTER_CHARS)
    ) {
      batches.push(current);
      current = [];
      currentChars = 0;
    }
    current.push(id);
    currentChars += chars;
  }
  return current.length === 0 ? batches : [...batches, current];
}

function productOf(value: unknown): CatalogProduct[] {
  const { retailer_id: retailerId, name, image_url: imageUrl } = membersOf(value);
  return typeof retailerId === 'string'
    ? [{ retailerId, name: textOr(name, null), imageUrl: textOr(imageUrl, null) }]
    : [];
}
