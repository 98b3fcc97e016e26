import { randomFillSync } from 'node:crypto';

/** Ids as tenants see them: a prefix that names the kind, then the UUID without dashes. None contains a dot. */
export const PUBLIC_ID_PREFIXES = ['evt', 'dlv', 'med', 'alr'] as const;

/** Batches have the UUIDs of their first deliveries. */
type Prefix = (typeof PUBLIC_ID_PREFIXES)[number] | 'batch';

/** The `webhook-id` of an event: the same over attempts, endpoints and replays. */
export function publicEventId(uuid: string): string {
  return publicId('evt', uuid);
}

/** The `X-Service-Delivery-Id` of one event for one endpoint. */
export function publicDeliveryId(uuid: string): string {
  return publicId('dlv', uuid);
}

/** The `eventId` of several messages that go out together, which begin with this delivery. */
export function publicBatchId(uuid: string): string {
  return publicId('batch', uuid);
}

/** The UUID of the first delivery of a batch. */
export function batchUuidOf(text: string): string | null {
  return ofKnownDay(uuidOf('batch', text));
}

export function publicMediaId(uuid: string): string {
  return publicId('med', uuid);
}

/** The id of an alert, and of a notice of one: its `webhook-id`. */
export function publicAlertId(uuid: string): string {
  return publicId('alr', uuid);
}

/** The UUID of a public id, here of media; null when the text cannot be one. */
export function mediaUuidOf(text: string): string | null {
  return uuidOf('med', text);
}

export function alertUuidOf(text: string): string | null {
  return uuidOf('alr', text);
}

export function eventUuidOf(text: string): string | null {
  return ofKnownDay(uuidOf('evt', text));
}

export function deliveryUuidOf(text: string): string | null {
  return ofKnownDay(uuidOf('dlv', text));
}

/** Set-up links and portal sessions have the numbers of their rows. */
export const SETUP_LINK_ID = /^sl_[1-9][0-9]{0,17}$/;
export const PORTAL_SESSION_ID = /^ps_[1-9][0-9]{0,17}$/;

export function publicSetupId(rowId: string): string {
  return `sl_${rowId}`;
}

export function publicSessionId(rowId: string): string {
  return `ps_${rowId}`;
}

export function setupRowOf(text: string): string | null {
  return SETUP_LINK_ID.test(text) ? text.slice('sl_'.length) : null;
}

export function sessionRowOf(text: string): string | null {
  return PORTAL_SESSION_ID.test(text) ? text.slice('ps_'.length) : null;
}

/** Whether the text has the form of an id that our database gave. */
export function isRowId(text: string): boolean {
  return /^[1-9]\d{0,17}$/.test(text);
}

const UUID_DIGITS = /^([0-9a-f]{8})([0-9a-f]{4})(7[0-9a-f]{3})([0-9a-f]{4})([0-9a-f]{12})$/;

function uuidOf(prefix: Prefix, text: string): string | null {
  if (!text.startsWith(`${prefix}_`)) return null;
  return (
    UUID_DIGITS.exec(text.slice(prefix.length + 1))
      ?.slice(1)
      .join('-') ?? null
  );
}

/** The end of the year 9999, nearly: later days have no partition, and years of five digits. */
const MAX_HIGH_BITS = 'e677c7d3';

function ofKnownDay(uuid: string | null): string | null {
  return uuid === null || uuid.slice(0, 8) >= MAX_HIGH_BITS ? null : uuid;
}

function publicId(prefix: Prefix, uuid: string): string {
  return `${prefix}_${uuid.replaceAll('-', '')}`;
}

const random = Buffer.alloc(16);

/** Drawn for many ids at once: to draw eight bytes takes ten times as long as all else. */
const drawn = Buffer.alloc(8 * 512);
let usedBytes = drawn.length;

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
  if (usedBytes === drawn.length) {
    randomFillSync(drawn);
    usedBytes = 0;
  }
  usedBytes += drawn.copy(random, 8, usedBytes, usedBytes + 8);
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
  return (
    /^[0-9a-f]{32}$/.test(text.slice(4)) && PUBLIC_ID_PREFIXES.some((prefix) => text.startsWith(`${prefix}_`))
  );
}
