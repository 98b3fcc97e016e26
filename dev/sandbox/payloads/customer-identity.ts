import { createHash } from 'node:crypto';
import { DEMO_CUSTOMERS, type PhoneNumber } from '../demo-accounts.ts';
import type { JsonObject } from './webhook-body.ts';

/** A customer as a webhook names one. */
export type Identity = { waId?: string | undefined; userId?: string | undefined };

const ID_SPACE = 10n ** 20n;

/** The id that the platform gives to a customer of one business, which every webhook names since 2026: always the same one. */
export function userIdOf(waId: string, { wabaId }: PhoneNumber): string {
  const digest = createHash('sha256').update(`${wabaId}:${waId}`).digest();
  const digits = String(digest.readBigUInt64BE() % ID_SPACE).padStart(20, '1');
  return `${waId.startsWith('91') ? 'IN' : 'US'}.${digits}`;
}

/** An entry of `contacts`. The profile stays away where the name is not known, as it often does in status webhooks. */
export function contactOf(
  { waId, userId }: Identity,
  { name, username }: { name?: string | undefined; username?: string | undefined },
): JsonObject {
  return {
    ...(name === undefined ? {} : { profile: { name, ...(username === undefined ? {} : { username }) } }),
    ...(waId === undefined ? {} : { wa_id: waId }),
    ...(userId === undefined ? {} : { user_id: userId }),
  };
}

/** The name of a demo customer. */
export function demoNameOf(waId: string | undefined): string | undefined {
  return DEMO_CUSTOMERS.find((customer) => customer.waId === waId)?.name;
}
