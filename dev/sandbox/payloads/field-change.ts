import { upstreamValue } from '../../../src/api/openapi/webhooks/upstream-examples.ts';
import { KNOWN_FIELDS } from '../../../src/platform/upstream-fields.ts';
import type { PhoneNumber } from '../demo-accounts.ts';
import { createRandomSource, outboundWamid, timestampSeconds } from './sources.ts';
import type { JsonObject } from './webhook-body.ts';

/** What a caller may say about a change in another field than `messages`. */
export type FieldRequest = {
  field: string;
  /** The example of the documentation unless given. */
  value?: unknown;
  seed?: string;
  phoneNumberId?: string;
  timestampSeconds?: number;
};

/** The JSON schema of FieldRequest. */
export const fieldRequestProperties = {
  field: { type: 'string', minLength: 1, maxLength: 100 },
  value: {},
  seed: { type: 'string' },
  phoneNumberId: { type: 'string' },
  timestampSeconds: { type: 'integer', minimum: 0 },
} as const;

/** What of the examples is replaced. */
const EXAMPLE = { number: '12025550100', phoneNumberId: '800000000000111', seconds: 1_790_000_000 };

/**
 * A webhook body that reports a change in a field: with the given value, or that of the documentation as if it happened
 * to this number now. Null: the field is not known and no value is given.
 */
export function buildFieldChange(request: FieldRequest, phone: PhoneNumber): JsonObject | null {
  const seconds = timestampSeconds(request);
  const known = KNOWN_FIELDS.find((field) => field === request.field);
  if (request.value === undefined && known === undefined) return null;
  const value =
    request.value !== undefined || known === undefined
      ? request.value
      : happeningNow(upstreamValue(known), request, { phone, seconds });
  const change = { field: request.field, value };
  return {
    object: 'whatsapp_business_account',
    entry: [{ id: phone.wabaId, time: Number(seconds), changes: [change] }],
  };
}

function happeningNow(
  example: object,
  { seed }: FieldRequest,
  { phone, seconds }: { phone: PhoneNumber; seconds: string },
): unknown {
  const random = createRandomSource(seed);
  const replaced = new Map<unknown, unknown>([
    [EXAMPLE.number, phone.displayPhoneNumber.replace(/\D/g, '')],
    [EXAMPLE.phoneNumberId, phone.phoneNumberId],
    [EXAMPLE.seconds, Number(seconds)],
    [String(EXAMPLE.seconds), seconds],
  ]);
  return JSON.parse(JSON.stringify(example), (_name, value: unknown) => {
    if (typeof value === 'string' && value.startsWith('wamid.')) return outboundWamid('12025550143', random);
    return replaced.has(value) ? replaced.get(value) : value;
  });
}
