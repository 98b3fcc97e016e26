import { setTimeout as sleep } from 'node:timers/promises';
import type { Ask, Customer } from './provision.ts';

// A customer connects a number by a link: your page redirects the browser to it, and your program learns what came of it.

export type SetupLink = {
  id: string;
  state: string;
  wabaId: string | null;
  phoneNumberId: string | null;
  failure: { code: string; retryable: boolean; message: string } | null;
};

/** The address to redirect the customer's browser to, and the id to ask about later. `visit`: your id of this wish of the customer, so that it makes one link. */
export async function connectLink(
  ask: Ask,
  { id }: Customer,
  { visit, ...urls }: { visit: string; successUrl: string; failureUrl: string },
): Promise<{ id: string; url: string }> {
  return await ask('POST', `/tenants/${id}/setup-links`, urls, { 'idempotency-key': visit });
}

const OVER = ['done', 'expired', 'revoked'];

/** Waits until the customer is done with a link, or it is over. Browsers may never return: this is the truth, not their way back. */
export async function connected(
  ask: Ask,
  { id }: Customer,
  linkId: string,
  everyMs = 2_000,
): Promise<SetupLink> {
  for (;;) {
    const link = await ask<SetupLink>('GET', `/tenants/${id}/setup-links/${linkId}`);
    if (OVER.includes(link.state)) return link;
    await sleep(everyMs);
  }
}
