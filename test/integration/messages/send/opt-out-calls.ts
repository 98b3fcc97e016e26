import type { SendingStack } from './sending-stack.ts';

let people = 0;

/** A phone number and a user id that no other test has. */
export function someone() {
  people += 1;
  return { phone: `1202555${4_000 + people}`, userId: `US.4000${people}` };
}

export const template = (to: string, name: string, more: object = {}) => ({
  to,
  type: 'template',
  template: { name, language: { code: 'en-US' } },
  ...more,
});
export const marketing = (to: string) => template(to, 'summer_offer');
export const utility = (to: string) => template(to, 'order_ready');

export const REFUSED = [422, 'recipient_opted_out'];

export type Said = { value: 'stop' | 'resume'; at: number; wa_id?: string; user_id?: string };

/** What upstream reports to this installation, and what a tenant asks of it. */
export function optOutsOf(stack: SendingStack) {
  function bodyOf(field: string, value: object, number = stack.number): Buffer {
    const metadata = { display_phone_number: '12025550100', phone_number_id: number };
    const change = { field, value: { messaging_product: 'whatsapp', metadata, ...value } };
    const entry = [{ id: stack.wabaId, time: people, changes: [change] }];
    return Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry }));
  }

  /** What upstream reports of preferences, each `at` so many seconds after a moment long ago. */
  function preference({ value, at, ...ids }: Said, number = stack.number): Buffer {
    const entry = {
      ...ids,
      category: 'marketing_messages',
      value,
      detail: 'x',
      timestamp: 1_790_000_000 + at,
    };
    return bodyOf('user_preferences', { contacts: [ids], user_preferences: [entry] }, number);
  }

  const stop = (phone: string, at = 0) => preference({ value: 'stop', at, wa_id: phone });
  const resume = (phone: string, at = 0) => preference({ value: 'resume', at, wa_id: phone });

  async function call(path: string, payload: object) {
    const { authorization } = stack;
    const url = `/api/external/opt-outs${path}`;
    const answer = await stack.app.inject({ method: 'POST', url, headers: { authorization }, payload });
    return { status: answer.statusCode, body: answer.json() };
  }

  /** What came of a send: 200, or its HTTP status and the code of its error. */
  async function outcome(body: object, headers: Record<string, string> = {}) {
    const { status, body: answer } = await stack.sendToEnd(body, headers);
    return status === 200 ? status : [status, answer.error.code];
  }

  return { bodyOf, preference, stop, resume, call, outcome };
}
