import { expect, test } from 'vitest';
import { listConversations } from '../../../src/database/conversation-list.ts';
import { listConversationMessages } from '../../../src/database/conversation-messages.ts';
import type { Database } from '../../../src/database/database.ts';
import { seedFixtureAccounts } from '../../support/test-accounts.ts';
import { testDatabase } from '../../support/test-database.ts';
import { NUMBER, WABA } from './api-harness.ts';

type Plan = { 'Actual Rows': number; 'Actual Loops': number; Plans?: Plan[] };

/** The largest number of rows that any step of the statement's plan has to do with. */
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
      return { rows: [] };
    },
  } as unknown as Database;
  await run(explaining);
  return most;
}

test('a page touches about as many rows as it shows, however long the conversation or the list', async () => {
  const { database } = await testDatabase();
  await seedFixtureAccounts(database);
  await database.raw(
    `insert into contacts (waba_id, wa_id) select '${WABA}', '91' || g from generate_series(1, 5000) g;
     insert into conversations (waba_id, phone_number_id, contact_id, last_message_at)
     select waba_id, '${NUMBER}', id, now() - id * interval '1 minute' from contacts;`,
  );
  await database.raw(
    `insert into messages (waba_id, phone_number_id, conversation_id, direction, upstream_id, type, content)
     select c.waba_id, c.phone_number_id, c.id, 'inbound', 'wamid.' || g, 'text', '{}' from generate_series(1, 40000) g
       join conversations c on c.id = (select min(id) from conversations) + (case when g % 2 = 0 then 0 else g % 4999 end)`,
  );
  await database.raw('vacuum analyze');
  const { rows } = await database.raw('select min(id) as id from conversations');
  const conversationId: string = rows[0].id;
  for (const order of ['asc', 'desc'] as const) {
    for (const afterId of [null, '20000']) {
      const touched = await mostRowsTouched(database, (explaining) =>
        listConversationMessages(explaining, WABA, conversationId, { order, afterId, limit: 26 }),
      );
      expect(touched).toBeGreaterThan(0);
      expect(touched).toBeLessThanOrEqual(26);
    }
  }
  const after = { lastMessageAtText: new Date(Date.now() - 2000 * 60_000).toISOString(), id: '1' };
  for (const position of [null, after]) {
    for (const phoneNumberId of [null, NUMBER]) {
      const touched = await mostRowsTouched(database, (explaining) =>
        listConversations(explaining, WABA, { phoneNumberId, after: position, limit: 26 }),
      );
      expect(touched).toBeGreaterThan(0);
      expect(touched).toBeLessThanOrEqual(26);
    }
  }
});
