import { expect, test } from 'vitest';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { collectGarbage } from '../../../support/collect-garbage.ts';
import { addConversation, addKey, NUMBER, startTestApi, WABA } from '../../api/api-harness.ts';

const MESSAGES = 50_000;
const MIB = 1024 * 1024;

/** What is still in use, in MiB. */
function heapMib(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed / MIB;
}

test('reading 50,000 messages page by page leaves nothing behind in memory', async () => {
  const { app, database } = await startTestApi();
  const { authorization } = await addKey(database);
  const id = await addConversation(database);
  await execute(
    database,
    `insert into messages (waba_id, phone_number_id, conversation_id, direction, upstream_id, type, content)
     select '${WABA}', '${NUMBER}', cast(:id as bigint), 'inbound', 'wamid.' || n, 'text',
            '{"text":{"body":"' || repeat('x', 300) || '"}}' from generate_series(1, cast(:count as integer)) n`,
    { id, count: MESSAGES },
  );
  let seen = 0;
  let url = `/api/external/conversations/${id}/messages?limit=100`;
  const read = async (until: number) => {
    while (seen < until) {
      const { data, nextCursor } = (await app.inject({ url, headers: { authorization } })).json();
      seen += data.length;
      url = `/api/external/conversations/${id}/messages?limit=100&cursor=${nextCursor}`;
    }
  };
  await read(MESSAGES / 10);
  const early = heapMib();
  await read(MESSAGES);
  expect(seen).toBe(MESSAGES);
  // All that was read since is about 30 MiB.
  expect(heapMib() - early).toBeLessThan(5);
});
