import type { PhoneNumber } from './demo-accounts.ts';
import { userIdOf } from './payloads/customer-identity.ts';
import { type StatusRequest, statusDetails } from './payloads/message-status.ts';
import { timestampSeconds } from './payloads/sources.ts';
import type { JsonObject } from './payloads/webhook-body.ts';

/** A status as the stand-in platform reports it, with the country of the recipient. */
type ReportedStatus = {
  id: string;
  status: string;
  timestamp: string;
  participant?: string;
  country: string;
  pricing?: { billable?: boolean; type?: string; category?: string };
};

type Message = {
  phone: PhoneNumber;
  country: string;
  pricing: ReportedStatus['pricing'];
  /** Seconds; null: nothing to pay for yet. */
  deliveredAt: number | null;
};

/** What the stand-in platform charges: each message that was delivered, once. */
export type Bill = {
  note: (status: ReportedStatus, phone: PhoneNumber) => void;
  /** `data_points` of `pricing_analytics`, by half hours. */
  points: (wabaId: string, between: { start: number; end: number }) => JsonObject[];
};

/** Notes a status that is sent; the country of a recipient is that of the user id. */
export function noteStatus(bill: Bill, request: StatusRequest, phone: PhoneNumber): void {
  const { id, status, participantId = '', recipientId, recipientUserId } = request;
  const { pricing } = { ...statusDetails(request), ...request.fields } as Pick<ReportedStatus, 'pricing'>;
  const waId = participantId || recipientId;
  const userId = recipientUserId ?? (waId === undefined ? '' : userIdOf(waId, phone));
  const timestamp = timestampSeconds(request);
  bill.note(
    {
      id,
      status,
      timestamp,
      participant: participantId,
      country: userId.slice(0, 2),
      ...(pricing && { pricing }),
    },
    phone,
  );
}

/** `pricing_analytics` of a WABA, where `fields` asks for it. */
export function pricingAnalytics(bill: Bill, wabaId: string, fields = ''): JsonObject {
  const [, start, end] = /pricing_analytics\.start\((\d+)\)\.end\((\d+)\)/.exec(fields) ?? [];
  if (start === undefined || end === undefined) return {};
  const points = bill.points(wabaId, { start: Number(start), end: Number(end) });
  return { pricing_analytics: { data: [{ data_points: points }] } };
}

const HALF_HOUR_S = 1_800;

/** Of each message that upstream charges for, in whatever market. */
const PRICE = 0.01;

/** The oldest are forgotten. */
const MAX_MESSAGES = 50_000;

const DELIVERED = ['delivered', 'read', 'played'];

export function createBill(): Bill {
  const messages = new Map<string, Message>();
  return {
    note: ({ id, status, timestamp, participant = '', country, pricing }, phone) => {
      const key = JSON.stringify([id, participant]);
      const known = messages.get(key) ?? { phone, country, pricing: undefined, deliveredAt: null };
      const isDelivered = DELIVERED.includes(status);
      messages.set(key, {
        ...known,
        pricing: pricing ?? known.pricing,
        deliveredAt: known.deliveredAt ?? (isDelivered ? Number(timestamp) : null),
      });
      const [oldest] = messages.keys();
      if (messages.size > MAX_MESSAGES && oldest !== undefined) messages.delete(oldest);
    },
    points: (wabaId, { start, end }) => {
      const points = new Map<string, JsonObject & { volume: number; cost: number }>();
      for (const { phone, country, pricing, deliveredAt } of messages.values()) {
        if (phone.wabaId !== wabaId || deliveredAt === null || deliveredAt < start || deliveredAt >= end)
          continue;
        const from = Math.floor(deliveredAt / HALF_HOUR_S) * HALF_HOUR_S;
        const cell = {
          start: from,
          end: from + HALF_HOUR_S,
          phone_number: phone.displayPhoneNumber.replaceAll(/\D/g, ''),
          country,
          pricing_type: pricing?.type?.toUpperCase() ?? 'UNKNOWN',
          pricing_category: pricing?.category?.toUpperCase().replaceAll('-', '_') ?? 'UNKNOWN',
        };
        const key = JSON.stringify(cell);
        const { volume, cost } = points.get(key) ?? { volume: 0, cost: 0 };
        const price = pricing?.billable === true ? PRICE : 0;
        points.set(key, { ...cell, volume: volume + 1, cost: Math.round((cost + price) * 100) / 100 });
      }
      return [...points.values()];
    },
  };
}
