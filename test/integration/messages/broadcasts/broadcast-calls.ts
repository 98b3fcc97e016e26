import { expect } from 'vitest';
import { LAST_RECIPIENT } from '../../../../src/features/messages/broadcasts/broadcast-recipients.ts';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { askApi } from '../send/ask-api.ts';
import type { SendingStack } from '../send/sending-stack.ts';

export const BROADCASTS = '/api/external/broadcasts';
export const TEMPLATE = { name: 'winter_sale', language: { code: 'en_US' } };

/** A step to its end, with all recipients. */
export const WHOLE_PASS = {
  upTo: LAST_RECIPIENT,
  endsAtMs: Number.POSITIVE_INFINITY,
  signal: new AbortController().signal,
  onMessage: () => undefined,
};

let phones = 0;

/** Customers that no other test has. */
export function people(count: number): { to: string; parameters: string[] }[] {
  return Array.from({ length: count }, () => ({
    to: `1202555${String(100_000 + phones++)}`,
    parameters: ['Asha', '20 %'],
  }));
}

/** Calls of broadcasts as the stack's tenant. */
export function broadcastCalls(stack: SendingStack) {
  const call = (method: string, path: string, body?: object) =>
    askApi(stack, `${BROADCASTS}${path}`, { method, body });
  const create = async (more: object = {}) => {
    const given = { name: 'Sale', phoneNumberId: stack.number, template: TEMPLATE, ...more };
    const { status, body } = await call('POST', '', given);
    expect([status, body.state]).toEqual([201, 'draft']);
    return String(body.id);
  };
  const add = async (id: string, recipients: readonly object[]) =>
    await call('POST', `/${id}/recipients`, { recipients });
  const verb = async (id: string, action: string) => await call('POST', `/${id}/${action}`);
  const get = async (id: string) => (await call('GET', `/${id}`)).body;
  /** A draft with recipients. */
  const draft = async (recipients: readonly object[], more: object = {}) => {
    const id = await create(more);
    for (let at = 0; at < recipients.length; at += 1_000) {
      expect((await add(id, recipients.slice(at, at + 1_000))).status).toBe(200);
    }
    return id;
  };
  const started = async (recipients: readonly object[], more: object = {}) => {
    const id = await draft(recipients, more);
    const { status, body } = await verb(id, 'start');
    expect([status, body.error]).toEqual([200, undefined]);
    return id;
  };
  /** Of the number, in messages per second. */
  const setPace = (perSecond: number) =>
    execute(
      stack.database,
      'update phone_numbers set messages_per_second = :perSecond where waba_id = :waba',
      {
        perSecond,
        waba: stack.wabaId,
      },
    );
  return { call, create, add, verb, get, draft, started, setPace };
}
