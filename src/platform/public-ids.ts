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
