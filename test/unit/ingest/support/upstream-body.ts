import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MessageItem } from '../../../../src/ingest/split/message-items.ts';
import type { PaymentItem, StatusItem } from '../../../../src/ingest/split/status-items.ts';
import { type SplitBody, splitUpstreamBody } from '../../../../src/ingest/split/upstream-items.ts';

const FIXTURES = join(import.meta.dirname, '../../../fixtures/upstream');

export const METADATA = '{"display_phone_number":"12025550100","phone_number_id":"800000000000111"}';
export const CONTACTS = '[{"profile":{"name":"Asha Tester"},"wa_id":"12025550143"}]';

/** Names of all fixture bodies, without the ending. */
export function fixtureNames(): string[] {
  return readdirSync(FIXTURES)
    .filter((file) => file.endsWith('.json') && file !== 'scenarios.json')
    .map((file) => file.replace(/\.json$/, ''));
}

export function fixtureBytes(path: string): Buffer {
  return readFileSync(join(FIXTURES, path));
}

export function splitFixture(name: string): SplitBody {
  return splitUpstreamBody(fixtureBytes(`${name}.json`));
}

/** A body with one change of field `messages` whose value has these members beside metadata. */
export function bodyText(valueMembers: string, metadata = METADATA): string {
  return (
    '{"object":"whatsapp_business_account","entry":[{"id":"900000000000101","changes":[{"field":"messages",' +
    `"value":{"messaging_product":"whatsapp","metadata":${metadata},${valueMembers}}}]}]}`
  );
}

export function splitText(text: string): SplitBody {
  return splitUpstreamBody(Buffer.from(text, 'utf8'));
}

/** The only item of a body with this one message. */
export function messageOf(messageJson: string, contactsJson = CONTACTS): MessageItem {
  const split = splitText(bodyText(`"contacts":${contactsJson},"messages":[${messageJson}]`));
  const [item] = split.items;
  if (item?.kind !== 'message') throw new Error(`no message: ${JSON.stringify(split)}`);
  return item;
}

/** The only item of a body with this one status. */
export function statusOf(statusJson: string, contactsJson = CONTACTS): StatusItem {
  const split = splitText(bodyText(`"contacts":${contactsJson},"statuses":[${statusJson}]`));
  const [item] = split.items;
  if (item?.kind !== 'status') throw new Error(`no status: ${JSON.stringify(split)}`);
  return item;
}

export function paymentOf(statusJson: string): PaymentItem {
  const split = splitText(bodyText(`"statuses":[${statusJson}]`));
  const [item] = split.items;
  if (item?.kind !== 'payment') throw new Error(`no payment: ${JSON.stringify(split)}`);
  return item;
}
