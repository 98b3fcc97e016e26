/** Ids as tenants see them: a prefix that names the kind, then the UUID without dashes. None contains a dot. */

type Prefix = 'evt' | 'dlv';

/** The `webhook-id` of an event: the same over attempts, endpoints and replays. */
export function publicEventId(uuid: string): string {
  return publicId('evt', uuid);
}

/** The `X-Service-Delivery-Id` of one event for one endpoint. */
export function publicDeliveryId(uuid: string): string {
  return publicId('dlv', uuid);
}

function publicId(prefix: Prefix, uuid: string): string {
  return `${prefix}_${uuid.replaceAll('-', '')}`;
}
