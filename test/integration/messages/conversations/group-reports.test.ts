import { describe, expect, test } from 'vitest';
import { forgetLeftMembers } from '../../../../src/features/customers/groups.ts';
import {
  expireContacts,
  expireConversations,
} from '../../../../src/ops/erasures/retention/tenant-retention.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { storedEvents, takeIn } from '../../../support/take-in.ts';
import { addEndpoint } from '../../../support/test-accounts.ts';
import { apiClient } from '../../api/api-client.ts';
import { NUMBER, OTHER_WABA, startTestApi, WABA } from '../../api/api-harness.ts';

const GROUP = 'Y2FwaV9ncm91cDoxZD';
const LIST = '/api/external/conversations';
const NOW = Math.floor(Date.now() / 1_000);

function body(field: string, value: object, wabaId = WABA): Buffer {
  const metadata = { display_phone_number: '12025550100', phone_number_id: NUMBER };
  const changes = [{ field, value: { messaging_product: 'whatsapp', metadata, ...value } }];
  return Buffer.from(
    JSON.stringify({ object: 'whatsapp_business_account', entry: [{ id: wabaId, changes }] }),
  );
}

/** A report of the group, so many seconds ago. */
const report = (field: string, ago: number, type: string, more: object = {}, wabaId = WABA) =>
  body(field, { groups: [{ timestamp: String(NOW - ago), group_id: GROUP, type, ...more }] }, wabaId);

const created = (ago = 100, more: object = {}) =>
  report('group_lifecycle_update', ago, 'group_create', { subject: 'Trip', ...more });
const deleted = (ago: number) => report('group_lifecycle_update', ago, 'group_delete');
const state = (ago: number, type: string) => report('group_status_update', ago, type);
const subject = (ago: number, text: string) =>
  report('group_settings_update', ago, 'group_settings_update', {
    group_subject: { text, update_successful: true },
  });
const joins = (ago: number, ...people: object[]) =>
  report('group_participants_update', ago, 'group_participants_add', { added_participants: people });
const leaves = (ago: number, ...people: object[]) =>
  report('group_participants_update', ago, 'group_participants_remove', { removed_participants: people });
const asks = (ago: number, waId: string, type = 'group_join_request_created') =>
  report('group_participants_update', ago, type, { wa_id: waId, join_request_id: 'J1' });

function says(from: string, id: string, more: object = { group_id: GROUP }): Buffer {
  const contacts = [{ profile: { name: `Name of ${from}` }, wa_id: from }];
  const message = { from, id, timestamp: String(NOW), type: 'text', text: { body: id }, ...more };
  return body('messages', { contacts, messages: [message] });
}

async function world() {
  const { database, ...api } = await startTestApi();
  const client = await apiClient({ database, ...api });
  const group = async () => {
    const { data } = await client.page(LIST);
    const row = data.find((one) => 'group' in one);
    return row === undefined ? null : (await client.get(`${LIST}/${row.id}`)).json().group;
  };
  const names = async () =>
    ((await group())?.members ?? []).map(
      (one: { waId: string; state: string }) => `${one.waId} ${one.state}`,
    );
  return { ...client, database, group, names };
}

describe('the conversation of a group', () => {
  test('shows subject, state and members as upstream reports them', async () => {
    const { database, group, page } = await world();
    await takeIn(database, created(100, { description: 'To Lisbon' }));
    await takeIn(
      database,
      joins(90, { wa_id: '111', user_id: 'US.1', username: 'pablo' }),
      says('111', 'wamid.1'),
    );
    await takeIn(database, joins(80, { wa_id: '222' }), asks(70, '333'));
    const since = (ago: number) => new Date((NOW - ago) * 1_000).toISOString();
    const expected = {
      id: GROUP,
      subject: 'Trip',
      state: 'active',
      description: 'To Lisbon',
      members: [
        {
          waId: '111',
          userId: 'US.1',
          name: 'Name of 111',
          username: 'pablo',
          state: 'member',
          since: since(90),
        },
        { waId: '222', userId: null, name: null, username: null, state: 'member', since: since(80) },
        { waId: '333', userId: null, name: null, username: null, state: 'requested', since: since(70) },
      ],
    };
    expect(await group()).toEqual(expected);
    expect((await page(LIST)).data).toMatchObject([
      { group: { id: GROUP, subject: 'Trip', state: 'active' } },
    ]);
    await takeIn(database, subject(60, 'Porto'), state(50, 'group_suspend'), leaves(40, { input: 'US.1' }));
    await takeIn(database, asks(30, '333', 'group_join_request_revoked'));
    expect(await group()).toMatchObject({ subject: 'Porto', state: 'suspended', members: [{ waId: '222' }] });
    await takeIn(database, state(20, 'group_suspend_cleared'));
    expect(await group()).toMatchObject({ state: 'active' });
    await takeIn(database, deleted(10), joins(5, { wa_id: '444' }));
    expect(await group()).toMatchObject({ subject: 'Porto', state: 'deleted', members: [] });
  });

  test('is the same in whatever order reports come, one by one or in one body', async () => {
    const { database, group, names } = await world();
    await takeIn(database, says('111', 'wamid.1'), says('222', 'wamid.2'));
    await takeIn(database, subject(20, 'Newer'), state(20, 'group_suspend'), leaves(20, { wa_id: '111' }));
    await takeIn(database, joins(10, { wa_id: '222' }));
    await takeIn(database, created(100), subject(50, 'Older'), state(60, 'group_suspend_cleared'));
    await takeIn(database, joins(90, { wa_id: '111' }), leaves(50, { wa_id: '222' }));
    expect(await group()).toMatchObject({ subject: 'Newer', state: 'suspended' });
    expect(await names()).toEqual(['222 member']);
    const groups = [
      ['group_participants_remove', 1, { removed_participants: [{ wa_id: '222' }] }],
      ['group_participants_add', 2, { added_participants: [{ wa_id: '111' }, { wa_id: '222' }] }],
    ].map(([type, ago, more]) => ({
      type,
      group_id: GROUP,
      timestamp: String(NOW - Number(ago)),
      ...(more as object),
    }));
    await takeIn(database, body('group_participants_update', { groups }));
    expect(await names()).toEqual(['111 member']);
    await takeIn(database, deleted(0), created(100));
    expect(await group()).toMatchObject({ state: 'deleted' });
  });

  test('is of its own WABA and number, and harmed by no report of another form', async () => {
    const { database, group } = await world();
    await takeIn(
      database,
      report('group_lifecycle_update', 1, 'group_create', { subject: 'Foreign' }, OTHER_WABA),
      body('group_lifecycle_update', { groups: 'none' }),
      body('group_participants_update', {
        groups: [null, {}, { group_id: 'x'.repeat(9_000), type: 'group_create' }],
      }),
      report('group_lifecycle_update', 1, 'group_create', { errors: [{ code: 131_000 }] }),
      deleted(1),
      leaves(1, { wa_id: '111' }),
    );
    expect(await group()).toBeNull();
    expect(await query(database, 'select distinct state from inbox')).toEqual([{ state: 'done' }]);
    await takeIn(database, created(-9_999, { subject: '<b>\u0000\ud800' }), subject(-9_998, 'Later'));
    expect(await group()).toMatchObject({ subject: 'Later', state: 'active' });
  });

  test('follows two ids of a member that turn out to be one person', async () => {
    const { database, names } = await world();
    await takeIn(database, created(), joins(90, { wa_id: '111' }), joins(80, { user_id: 'US.1' }));
    expect(await names()).toHaveLength(2);
    await takeIn(database, says('111', 'wamid.1', { from_user_id: 'US.1' }));
    expect(await names()).toEqual(['111 member']);
  });

  test('stays while upstream has the group, and forgets who left', async () => {
    const { database, names, group } = await world();
    await takeIn(
      database,
      created(),
      joins(90, { wa_id: '111' }, { wa_id: '222' }),
      leaves(80, { wa_id: '222' }),
    );
    await execute(
      database,
      `insert into tenant_policies (tenant_id, message_days) select tenant_id, 1 from wabas where waba_id = '${WABA}'
      on conflict (tenant_id) do update set message_days = 1`,
    );
    const later = async () => {
      await execute(database, `update conversations set last_message_at = now() - interval '9 days'`);
      await execute(database, `update contacts set updated_at = now() - interval '9 days'`);
      await expireConversations({ database });
      await expireContacts({ database });
    };
    await later();
    expect(await names()).toEqual(['111 member']);
    expect(await query(database, 'select wa_id as id from contacts')).toEqual([{ id: '111' }]);
    await takeIn(database, leaves(1, { wa_id: '111' }));
    expect(await forgetLeftMembers(database, 10)).toBe(0);
    await execute(database, `update group_members set at = now() - interval '15 days'`);
    expect(await forgetLeftMembers(database, 10)).toBe(1);
    await takeIn(database, deleted(0));
    await later();
    expect(await group()).toBeNull();
    expect(await query(database, 'select 1 from group_details')).toEqual([]);
    expect(await query(database, 'select 1 from contacts')).toEqual([]);
  });

  test('comes with an event for whoever asks for the fields, and with none for all others', async () => {
    const { database } = await world();
    await addEndpoint(database, WABA, 'https://tenant.example/hook');
    await takeIn(database, created(), joins(90, { wa_id: '111' }));
    expect((await storedEvents(database)).map(({ type }) => type)).toEqual([
      'upstream.group_lifecycle_update',
      'upstream.group_participants_update',
    ]);
    expect(await query(database, 'select 1 from deliveries')).toEqual([]);
  });
});
