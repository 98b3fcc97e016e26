import { expect, test } from 'vitest';
import {
  findConversation,
  listConversations,
  serviceWindows,
} from '../../../../src/features/messages/conversations/conversations.ts';
import { listAnnotations } from '../../../../src/features/messages/conversations/message-annotations.ts';
import {
  listConversationMessages,
  listNewestMessages,
} from '../../../../src/features/messages/conversations/message-list.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { seededDatabase } from '../../../support/test-database.ts';
import { NUMBER, SECOND_NUMBER, WABA } from '../../api/api-harness.ts';

type Plan = { 'Actual Rows': number; 'Actual Loops': number; Plans?: Plan[] };

/** The largest number of rows that any step of the statements' plans has to do with. */
async function mostRowsTouched(
  database: Database,
  run: (explaining: Database) => Promise<unknown>,
): Promise<number> {
  let most = 0;
  const explaining = {
    raw: async (text: string, bindings: never) => {
      const { rows } = await database.raw(`explain (analyze, format json) ${text}`, bindings);
      const visit = (plan: Plan) => {
        most = Math.max(most, plan['Actual Rows'] * plan['Actual Loops']);
        for (const child of plan.Plans ?? []) visit(child);
      };
      visit(rows[0]['QUERY PLAN'][0].Plan);
      // What follows may depend on what was found.
      return await database.raw(text, bindings);
    },
  } as unknown as Database;
  await run(explaining);
  return most;
}

const NO_FILTER = { phoneNumberId: null, customer: null, since: null };
const NO_MESSAGE_FILTER = { direction: null, type: null, since: null, until: null };

test('a page touches about as many rows as it shows, however long the conversation or the list', async () => {
  const { database } = await seededDatabase();
  await database.raw(
    `insert into contacts (waba_id, wa_id, user_id) select '${WABA}', '91' || g, 'IN.' || g from generate_series(1, 5000) g;
     insert into conversations (waba_id, phone_number_id, contact_id, last_message_at)
     select waba_id, case when id % 100 = 0 then '${SECOND_NUMBER}' else '${NUMBER}' end, id,
            now() - id * interval '1 minute' from contacts;`,
  );
  await database.raw(
    `insert into messages (waba_id, phone_number_id, conversation_id, direction, upstream_id, type, content, context_id,
                           target_id, created_at)
     select c.waba_id, c.phone_number_id, c.id, 'inbound', 'wamid.' || g,
            case when g % 7 = 0 then 'reaction' else 'text' end, '{}', 'wamid.' || (g - 2),
            case when g % 7 = 0 then 'wamid.' || (g - 4) end, now() - (40000 - g) * interval '1 minute'
       from generate_series(1, 40000) g
       join conversations c on c.id = (select min(id) from conversations) + (case when g % 2 = 0 then 0 else g % 4999 end)`,
  );
  await database.raw('vacuum analyze');
  const { rows } = await database.raw('select min(id) as id from conversations');
  const conversationId: string = rows[0].id;
  const expectFew = async (most: number, run: (explaining: Database) => Promise<unknown>) => {
    const touched = await mostRowsTouched(database, run);
    expect(touched).toBeGreaterThan(0);
    expect(touched).toBeLessThanOrEqual(most);
  };
  const hours = (ago: number) => new Date(Date.now() - ago * 3_600_000);
  for (const order of ['asc', 'desc'] as const) {
    for (const afterId of [null, '20000']) {
      const walk = { order, afterId, limit: 25 };
      await expectFew(26, (explaining) => listConversationMessages(explaining, WABA, conversationId, walk));
    }
    // The first of two ranges that hold thousands: two minutes more are looked at on either side.
    const filter = { ...NO_MESSAGE_FILTER, since: hours(400), until: hours(100) };
    await expectFew(60, (explaining) =>
      listConversationMessages(explaining, WABA, conversationId, { order, afterId: null, limit: 25 }, filter),
    );
  }
  const after = { lastMessageAtText: hours(2000 / 60).toISOString(), id: '1' };
  for (const position of [null, after]) {
    for (const phoneNumberId of [null, NUMBER, SECOND_NUMBER]) {
      for (const since of [null, hours(80)]) {
        for (const order of ['asc', 'desc'] as const) {
          const walk = { order, after: position, limit: 26 };
          await expectFew(26, (explaining) =>
            listConversations(explaining, WABA, { ...NO_FILTER, phoneNumberId, since }, walk),
          );
        }
      }
    }
  }
  for (const customer of [{ phone: '914711' }, { userId: 'IN.4711' }]) {
    const walk = { order: 'desc' as const, after: null, limit: 26 };
    await expectFew(3, (explaining) => listConversations(explaining, WABA, { ...NO_FILTER, customer }, walk));
  }
  const page = await listConversationMessages(database, WABA, conversationId, {
    order: 'desc',
    afterId: null,
    limit: 100,
  });
  // Four kinds for each message.
  await expectFew(400, (explaining) => listAnnotations(explaining, WABA, page?.messages ?? []));
  const listed = Array.from({ length: 25 }, (_, n) => String(Number(conversationId) + n));
  await expectFew(25, (explaining) => listNewestMessages(explaining, WABA, listed));
  // What came late is looked for among the newest 50 that each customer wrote.
  await expectFew(25 * 50, (explaining) => serviceWindows(explaining, WABA, listed));
  await expectFew(20_000, (explaining) => findConversation(explaining, WABA, conversationId));
});
