import { describe, expect, test } from 'vitest';
import type { UpstreamItem } from '../../../src/ingest/split/upstream-items.ts';
import { splitUpstreamBody } from '../../../src/ingest/split/upstream-items.ts';
import { fixtureBytes, fixtureNames, splitFixture } from './support/upstream-body.ts';

type Json = Record<string, unknown>;
type Value = {
  metadata: Json;
  contacts?: Json[];
  messages?: Json[];
  statuses?: Json[];
  field: string;
  waba: string;
};

/** The values of a fixture through JSON.parse: an independent way to what must come out. */
function valuesOf(text: string): Value[] {
  const body = JSON.parse(text) as { entry: { id: string; changes: { field: string; value: Json }[] }[] };
  return body.entry.flatMap((entry) =>
    entry.changes.map(
      (change) => ({ ...change.value, field: change.field, waba: entry.id }) as unknown as Value,
    ),
  );
}

function withoutMediaUrl(message: Json): Json {
  const copy = structuredClone(message);
  const type = String(copy.type);
  const carrier = type === 'edit' ? ((copy.edit as Json).message as Json) : copy;
  if (['image', 'video', 'audio', 'document', 'sticker'].includes(String(carrier.type))) {
    delete (carrier[String(carrier.type)] as Json).url;
  }
  return copy;
}

function contactsOf(value: Value, waId: unknown, userId: unknown): Json[] {
  return (value.contacts ?? []).filter(
    (contact) => (contact.wa_id && contact.wa_id === waId) || (contact.user_id && contact.user_id === userId),
  );
}

const KNOWN = ['messaging_product', 'metadata', 'contacts', 'messages', 'statuses', 'field', 'waba'];

/** What upstream says beside the items of a value. */
function besideItems(value: Value): Json {
  const others = Object.entries(value).filter(([name]) => !KNOWN.includes(name));
  return others.length === 0 ? {} : { value: Object.fromEntries(others) };
}

function statusDataOf(value: Value, status: Json): Json {
  const contacts = contactsOf(value, status.recipient_id, status.recipient_user_id);
  return { metadata: value.metadata, status, ...(contacts.length > 0 && { contacts }) };
}

function expectedDataOf(text: string): unknown[] {
  return valuesOf(text).flatMap((value): unknown[] => {
    const { field, waba: _waba, ...rest } = value;
    const isItemless = (value.messages ?? []).length + (value.statuses ?? []).length === 0;
    if (field !== 'messages' || isItemless) return [{ field, value: rest }];
    return [
      ...(value.messages ?? []).map((message) => ({
        metadata: value.metadata,
        contacts: contactsOf(value, message.from, message.from_user_id),
        message: withoutMediaUrl(message),
        ...besideItems(value),
      })),
      ...(value.statuses ?? []).map((status) =>
        status.type === 'payment'
          ? { payment: status }
          : { ...statusDataOf(value, status), ...besideItems(value) },
      ),
    ];
  });
}

function comparableData(item: UpstreamItem): unknown {
  const data = JSON.parse(item.eventData) as Json;
  return item.kind === 'payment' ? { payment: data.raw } : data;
}

function kindsOf(name: string): string[] {
  return splitFixture(name).items.map((item) => item.kind);
}

const names = fixtureNames();

describe('every fixture', () => {
  test('is found: the folder is not empty', () => {
    expect(names.length).toBeGreaterThanOrEqual(78);
  });

  test.each(names)('%s: each item reaches the tenant with exactly what upstream sent', (name) => {
    const bytes = fixtureBytes(`${name}.json`);
    const split = splitUpstreamBody(bytes);
    expect(split.items.map(comparableData)).toEqual(expectedDataOf(bytes.toString('utf8')));
    for (const item of split.items) {
      expect(item.path).toMatch(/^entry\[\d+\]\.changes\[\d+\](\.value\.(messages|statuses)\[\d+\])?$/);
      expect(item.laneKey).not.toBe('');
      if (item.kind === 'message') expect(item.eventId).toBe(item.upstreamId);
      if (item.kind === 'status') expect(item.eventId).toBe(item.upstreamId);
      if (item.kind === 'payment') expect(item.eventId).toMatch(/^payment:[^:]*:[^:]*:[^:]+$/);
    }
  });

  test.each(names)('%s: belongs to the family that its name says', (name) => {
    const split = splitFixture(name);
    const kinds = [...new Set(split.items.map((item) => item.kind))];
    const reasons = split.quarantined.map((part) => part.reason);
    const family = name.split('_')[0];
    if (family === 'in' || family === 'odd') expect([kinds, reasons]).toEqual([['message'], []]);
    else if (family === 'st') expect([kinds, reasons]).toEqual([['status'], []]);
    else if (family === 'pay') expect([kinds, reasons]).toEqual([['payment'], []]);
    else if (['err', 'act', 'call', 'fld'].includes(family ?? ''))
      expect([kinds, reasons]).toEqual([['upstream'], []]);
    else expect([family, reasons]).toEqual(['batch', []]);
  });
});

describe('batches', () => {
  test('keep the order of the arrays, messages before statuses', () => {
    expect(kindsOf('batch_two_messages_one_value')).toEqual(['message', 'message']);
    expect(kindsOf('batch_messages_and_statuses_one_value')).toEqual(['message', 'status', 'status']);
    expect(kindsOf('batch_60_statuses')).toHaveLength(60);
    const ladder = splitFixture('batch_statuses_out_of_order').items;
    expect(ladder.map((item) => item.kind === 'status' && item.status)).toEqual([
      'read',
      'sent',
      'delivered',
    ]);
  });

  test('are split by tenant and number', () => {
    const tenants = splitFixture('batch_multi_entry_two_wabas').items.map((item) => [
      item.wabaId,
      item.phoneNumberId,
    ]);
    expect(tenants).toEqual([
      ['900000000000101', '800000000000111'],
      ['900000000000202', '800000000000221'],
    ]);
    const numbers = splitFixture('batch_multi_change_two_numbers').items.map((item) => item.phoneNumberId);
    expect(numbers).toEqual(['800000000000111', '800000000000112']);
  });

  test('of 60 statuses have 60 dedup keys', () => {
    expect(new Set(splitFixture('batch_60_statuses').items.map((item) => item.dedupKey)).size).toBe(60);
  });
});

describe('other webhook fields', () => {
  const ownersOf = (name: string) =>
    splitFixture(name).items.map(({ wabaId, phoneNumberId }) => [wabaId, phoneNumberId]);

  test('say whose they are, wherever upstream says it', () => {
    const [waba, number] = ['900000000000101', '800000000000111'];
    expect(ownersOf('fld_account_update_partner_removed_coexistence')).toEqual([[waba, null]]);
    expect(ownersOf('fld_account_update_calling_restriction_entry_zero')).toEqual([['0', null]]);
    expect(ownersOf('fld_account_settings_update_calling')).toEqual([[waba, number]]);
    expect(ownersOf('fld_messaging_handovers_control_passed')).toEqual([[waba, number]]);
    expect(ownersOf('fld_standby_inbound_text')).toEqual([[waba, number]]);
    expect(ownersOf('act_marketing_link_click')).toEqual([[waba, number]]);
  });

  test('have the lane of what they are about', () => {
    const laneOf = (name: string) => splitFixture(name).items[0]?.laneKey;
    expect(laneOf('fld_standby_inbound_text')).toBe('upstream.standby:12025550143');
    expect(laneOf('fld_standby_echo_text')).toBe('upstream.standby:12025550143');
    expect(laneOf('fld_standby_statuses')).toBe('upstream.standby:12025550143');
    expect(laneOf('fld_standby_echo_template_bsuid')).toBe('upstream.standby:US.10000000000000000143');
    expect(laneOf('fld_messaging_handovers_control_passed')).toBe('upstream.messaging_handovers:12025550143');
  });
});

describe('scenarios', () => {
  const keysOf = (name: string) => splitFixture(name).items.map((item) => item.dedupKey);

  test('redelivery: the same body gives the same keys', () => {
    for (const name of names) expect(keysOf(name)).toEqual(keysOf(name));
  });

  test('status_ladder_reversed: three statuses of one message are three events in one lane', () => {
    const steps = ['st_read', 'st_delivered', 'st_sent_v24'];
    expect(new Set(steps.flatMap(keysOf)).size).toBe(3);
    expect(new Set(steps.flatMap((name) => splitFixture(name).items.map((item) => item.laneKey))).size).toBe(
      1,
    );
  });

  test('payment_lifecycle: four distinct events, the repetition is recognised, all in one lane', () => {
    const steps = [
      'pay_pending',
      'pay_captured_upi',
      'pay_captured_upi',
      'pay_refund_pending',
      'pay_refund_success_two',
    ];
    expect(steps.flatMap(keysOf)).toHaveLength(5);
    expect(new Set(steps.flatMap(keysOf)).size).toBe(4);
    expect(new Set(steps.flatMap((name) => splitFixture(name).items.map((item) => item.laneKey)))).toEqual(
      new Set(['ord-1001']),
    );
  });

  test('identity_rotation: the change links the old ids with the new ones', () => {
    const [before] = splitFixture('in_bsuid_with_phone').items;
    const [change] = splitFixture('in_system_user_changed_number_bsuid').items;
    expect(before?.kind === 'message' && [before.sender.waId, before.sender.userId]).toEqual([
      '12025550143',
      'US.10000000000000000143',
    ]);
    expect(change?.kind === 'message' && change.identityChange).toEqual({
      previousWaId: '12025550143',
      previousUserId: 'US.10000000000000000143',
      waId: '12025550199',
      userId: 'US.10000000000000000199',
    });
  });
});

describe('wire bodies', () => {
  test.each([
    [
      'escaped_unicode_and_slash',
      '"\\u00e4\\u00f6\\u00e5 \\ud83d\\ude4f https:\\/\\/example.com\\/a?b=1&c=<d>"',
    ],
    ['escaped_unicode', '"\\u00e4\\u00f6\\u00e5 \\ud83d\\ude4f https://example.com/a?b=1&c=<d>"'],
    ['raw_utf8', '"äöå 🙏 https://example.com/a?b=1&c=<d>"'],
  ])('%s: escapes reach the tenant as they are written', (name, bodyJson) => {
    const { items, quarantined } = splitUpstreamBody(fixtureBytes(`wire/${name}.body`));
    expect(quarantined).toEqual([]);
    expect(items[0]?.eventData).toContain(`"text":{"body":${bodyJson}}`);
  });
});
