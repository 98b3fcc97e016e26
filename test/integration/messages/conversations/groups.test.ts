import { expect, test } from 'vitest';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../../support/take-in.ts';
import { apiClient } from '../../api/api-client.ts';
import { NUMBER, startTestApi, WABA } from '../../api/api-harness.ts';

const GROUP = 'Y2FwaV9ncm91cDox';
const LIST = '/api/external/conversations';

function body(value: object): Buffer {
  const metadata = { display_phone_number: '12025550100', phone_number_id: NUMBER };
  const changes = [{ field: 'messages', value: { messaging_product: 'whatsapp', metadata, ...value } }];
  return Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry: [{ id: WABA, changes }] }));
}

function textFrom(from: string, id: string, more: object = {}): Buffer {
  const contacts = [{ profile: { name: `Name of ${from}` }, wa_id: from }];
  const timestamp = String(Math.floor(Date.now() / 1000));
  const message = { from, id, timestamp, type: 'text', text: { body: id }, ...more };
  return body({ contacts, messages: [message] });
}

const inGroup = { group_id: GROUP };

test('what is said in a group has a conversation of its own, and opens the window of the group alone', async () => {
  const { database, ...api } = await startTestApi();
  const { get, page } = await apiClient({ database, ...api });
  const reaction = (emoji: string) => ({
    ...inGroup,
    type: 'reaction',
    reaction: { message_id: 'wamid.g1', emoji },
  });
  await takeIn(database, textFrom('111', 'wamid.g1', inGroup), textFrom('222', 'wamid.g2', inGroup));
  await takeIn(
    database,
    textFrom('111', 'wamid.private'),
    textFrom('333', 'wamid.g3', inGroup),
    textFrom('222', 'wamid.r1', reaction('👍')),
    textFrom('333', 'wamid.r2', reaction('🎉')),
    textFrom('333', 'wamid.r3', reaction('✨')),
    body({
      statuses: ['111', '222'].map((participant) => ({
        id: 'wamid.out',
        status: 'read',
        timestamp: '1790000000',
        recipient_id: GROUP,
        recipient_type: 'group',
        recipient_participant_id: participant,
      })),
    }),
  );
  const { data } = await page(LIST);
  const nobody = { waId: null, userId: null, name: null, username: null };
  const group = data.find((row) => 'group' in row);
  const [alone, ...others] = data.filter((row) => row !== group);
  expect(group).toMatchObject({ group: { id: GROUP, subject: null, state: null }, customer: nobody });
  expect([alone, others]).toMatchObject([{ customer: { waId: '111', name: 'Name of 111' } }, []]);
  expect(alone).not.toHaveProperty('group');

  const messages = (await page(`${LIST}/${group?.id}/messages?order=asc`)).data;
  expect(messages.map(({ metaMessageId }) => metaMessageId)).toEqual([
    'wamid.g1',
    'wamid.g2',
    'wamid.g3',
    'wamid.r1',
    'wamid.r2',
    'wamid.r3',
  ]);
  expect(messages[0]).toMatchObject({ sender: '111', message: { from: '111', group_id: GROUP } });
  expect(messages[0]?.reactions).toMatchObject([{ emoji: '👍' }, { emoji: '✨' }]);
  expect((await page(`${LIST}/${alone?.id}/messages`)).data).toMatchObject([
    { metaMessageId: 'wamid.private' },
  ]);

  expect((await get(`${LIST}/${group?.id}`)).json()).toMatchObject({
    customerServiceWindow: { isOpen: true, expiresAt: expect.any(String), lastInboundAt: expect.any(String) },
    messageCounts: { inbound: 6, outbound: 0 },
  });
  expect((await get(`${LIST}/${alone?.id}`)).json().customerServiceWindow.isOpen).toBe(true);
  expect((await page(`${LIST}?customer=222`)).data).toEqual([]);
  const events = await query<{ conversationId: string }>(
    database,
    `select distinct conversation_id as "conversationId" from events where event_type = 'status'`,
  );
  expect(events).toEqual([{ conversationId: group?.id }]);
});
