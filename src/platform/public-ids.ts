import { randomFillSync } from 'node:crypto';

/** Ids as tenants see them: a prefix that names the kind, then the UUID without dashes. None contains a dot. */

type Prefix = 'evt' | 'dlv' | 'med';

/** The `webhook-id` of an event: the same over attempts, endpoints and replays. */
export function publicEventId(uuid: string): string {
  return publicId('evt', uuid);
}

/** The `X-Service-Delivery-Id` of one event for one endpoint. */
export function publicDeliveryId(uuid: string): string {
  return publicId('dlv', uuid);
}

/** The id of a file that a tenant uploaded for sends. */
export function publicMediaId(uuid: string): string {
  return publicId('med', uuid);
}

const MEDIA_ID = /^med_([0-9a-f]{8})([0-9a-f]{4})(7[0-9a-f]{3})([0-9a-f]{4})([0-9a-f]{12})$/;

/** The UUID of a public media id; null when the text cannot be one. */
export function mediaUuidOf(text: string): string | null {
  return MEDIA_ID.exec(text)?.slice(1).join('-') ?? null;
}

const EVENT_ID = /^evt_([0-9a-f]{8})([0-9a-f]{4})(7[0-9a-f]{3})([0-9a-f]{4})([0-9a-f]{12})$/;
/** The end of the year 9999, nearly: later days have no partition, and years of five digits. */
const MAX_HIGH_BITS = 'e677c7d3';

/** The UUID of a public event id; null when the text cannot be one. */
export function eventUuidOf(text: string): string | null {
  const parts = EVENT_ID.exec(text)?.slice(1);
  if (parts === undefined || (parts[0] ?? '') >= MAX_HIGH_BITS) return null;
  return parts.join('-');
}

const DELIVERY_ID = /^dlv_([0-9a-f]{8})([0-9a-f]{4})(7[0-9a-f]{3})([0-9a-f]{4})([0-9a-f]{12})$/;

/** The UUID of a public delivery id; null when the text cannot be one. */
export function deliveryUuidOf(text: string): string | null {
  const parts = DELIVERY_ID.exec(text)?.slice(1);
  if (parts === undefined || (parts[0] ?? '') >= MAX_HIGH_BITS) return null;
  return parts.join('-');
}

function publicId(prefix: Prefix, uuid: string): string {
  return `${prefix}_${uuid.replaceAll('-', '')}`;
}

const random = Buffer.alloc(16);

let lastMs = 0;
let counter = 0;
const MAX_COUNTER = 0x0fff;

/**
 * A version 7 UUID (RFC 9562): its first 48 bits are `atMs`, so ids of one day lie together and sort by time. Those
 * that one process makes for the same millisecond sort in the order in which they are made, up to 4,096 of them.
 */
export function uuidV7(atMs: number): string {
  counter = atMs === lastMs ? Math.min(counter + 1, MAX_COUNTER) : 0;
  lastMs = atMs;
  randomFillSync(random, 8);
  random.writeUIntBE(atMs, 0, 6);
  random.writeUInt16BE(0x7000 | counter, 6);
  random[8] = 0x80 | ((random[8] ?? 0) & 0x3f);
  const hex = random.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** When a version 7 UUID was made, ms since 1970. */
export function msOfUuidV7(uuid: string): number {
  return Number.parseInt(uuid.slice(0, 8) + uuid.slice(9, 13), 16);
}

/** The lowest UUID of a millisecond: version 7 UUIDs made from then on are not below it. */
export function lowestUuidAt(atMs: number): string {
  const hex = Math.max(0, atMs).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-0000-0000-000000000000`;
}

/** The UTC day (`YYYY-MM-DD`) a version 7 UUID was made on: the partition its row is in. */
export function dayOfUuidV7(uuid: string): string {
  return new Date(msOfUuidV7(uuid)).toISOString().slice(0, 10);
}

/** Whether the text has the form of an id of ours, which says nothing about a customer. */
export function isPublicId(text: string): boolean {
  return /^(?:evt|dlv|med)_[0-9a-f]{32}$/.test(text);
}
