import { expect, test } from 'vitest';
import { readGroupReports } from '../../../src/ingest/split/groups.ts';
import { parseJson } from '../../../src/platform/json/json-text.ts';

const read = (...groups: unknown[]) =>
  readGroupReports(parseJson(JSON.stringify({ groups }), { deepNodes: 'mark' }));
const about = { group_id: 'G1', timestamp: '1750100300' };
const nothing = { subject: null, description: null, state: null, people: [] };
const report = { groupId: 'G1', at: new Date(1_750_100_300_000), ...nothing };
const nobody = { otherPhone: null, parentUserId: null, username: null };

test('a group that was made, blocked, released or deleted has that state', () => {
  const created = { ...about, type: 'group_create', subject: 'Trip', description: 'To Lisbon' };
  expect(read(created)).toEqual([{ ...report, state: 'active', subject: 'Trip', description: 'To Lisbon' }]);
  expect(read({ ...about, type: 'group_suspend' })).toEqual([{ ...report, state: 'suspended' }]);
  expect(read({ ...about, type: 'group_suspend_cleared' })).toEqual([{ ...report, state: 'active' }]);
  expect(read({ ...about, type: 'group_delete' })).toEqual([{ ...report, state: 'deleted' }]);
});

test('what failed upstream changes nothing', () => {
  const errors = [{ code: 131000, message: 'no' }];
  expect(
    read({ ...about, type: 'group_create', errors }, { ...about, type: 'group_delete', errors }),
  ).toEqual([]);
  const settings = {
    ...about,
    type: 'group_settings_update',
    errors,
    group_subject: { text: 'New', update_successful: true },
    group_description: { text: 'Refused', update_successful: false },
  };
  expect(read(settings)).toEqual([{ ...report, subject: 'New' }]);
});

test('members are known by phone and user id, those whom the business removed by what it named', () => {
  const added = { wa_id: '16505551234', user_id: 'US.1', parent_user_id: 'US.ENT.2', username: 'pablo' };
  expect(read({ ...about, type: 'group_participants_add', added_participants: [added] })[0]?.people).toEqual([
    {
      waId: '16505551234',
      userId: 'US.1',
      otherPhone: null,
      parentUserId: 'US.ENT.2',
      username: 'pablo',
      state: 'member',
    },
  ]);
  const removed = [{ input: '+16505551234' }, { input: 'US.7' }, { wa_id: 16505551236 }];
  const failed = [{ input: '16505550000', errors: [{ code: 131009 }] }];
  const removal = { removed_participants: removed, failed_participants: failed };
  expect(read({ ...about, type: 'group_participants_remove', ...removal })[0]?.people).toEqual([
    { waId: '16505551234', userId: null, ...nobody, state: 'left' },
    { waId: null, userId: 'US.7', ...nobody, state: 'left' },
    { waId: '16505551236', userId: null, ...nobody, state: 'left' },
  ]);
  const asks = { ...about, wa_id: '16505551235', join_request_id: 'J1' };
  expect(read({ ...asks, type: 'group_join_request_created' })[0]?.people).toMatchObject([
    { state: 'requested' },
  ]);
  expect(read({ ...asks, type: 'group_join_request_revoked' })[0]?.people).toMatchObject([{ state: 'left' }]);
});

test('reports of another form say nothing, and none of them is larger than what is kept', () => {
  const forms = [
    null,
    7,
    'G1',
    [],
    {},
    { type: 'group_create' },
    { ...about },
    { ...about, type: 'group_of_the_future' },
  ];
  expect(read(...forms)).toEqual([]);
  expect(readGroupReports(parseJson('{"groups":{"group_id":"G1"}}'))).toEqual([]);
  const people = Array.from({ length: 5_000 }, (_, n) => ({ wa_id: String(16_505_550_000 + n) }));
  const [many] = read({
    ...about,
    type: 'group_participants_add',
    added_participants: [...people, null, {}],
  });
  expect(many?.people).toHaveLength(1_024);
  const [long] = read({ ...about, type: 'group_create', subject: `\u0000${'x'.repeat(9_000)}` });
  expect(long?.subject?.length).toBeLessThanOrEqual(512);
  expect(long?.subject).not.toContain('\u0000');
});
