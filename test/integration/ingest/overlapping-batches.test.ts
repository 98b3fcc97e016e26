import { expect, onTestFinished, test } from 'vitest';
import { makeDirectIntake } from '../../../src/ingest/intake/direct-intake.ts';
import type { IntakeTools } from '../../../src/ingest/intake/intake-tools.ts';
import { openDatabase } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { ACCOUNT, bodyOf, textMessage } from '../../support/load/upstream-bodies.ts';
import { drainInbox, ENDLESS_PATIENCE, intakeTools, storedEvents } from '../../support/take-in.ts';
import { signed, startTestApi } from '../api/api-harness.ts';

/** API and intake of one process. */
async function startBoth() {
  let tools: IntakeTools | null = null;
  const idle = { isIdle: () => true };
  const api = await startTestApi(async (url) => {
    const database = openDatabase({ url, poolMax: 5, applicationName: 'worker', fixedPlans: true });
    onTestFinished(() => database.destroy());
    tools = intakeTools(database);
    return { keepAtOnce: makeDirectIntake(tools, idle, ENDLESS_PATIENCE) };
  });
  if (tools === null) throw new Error('the API was built without intake');
  return { ...api, tools: tools as IntakeTools };
}

test('what cannot be committed is taken in before what came behind it', async () => {
  const { app, database, tools } = await startBoth();
  const post = async (id: string) => {
    const payload = bodyOf(ACCOUNT, [textMessage(id, 'hello')]);
    const url = '/upstream/webhook';
    return (await app.inject({ method: 'POST', url, headers: signed(payload), payload })).statusCode;
  };
  // Whose number it is, is remembered then.
  while ((await storedEvents(database)).length === 0) {
    await post('wamid.first');
    await drainInbox(database, tools);
  }
  await database.raw(
    `create table fails (n integer);
     create function at_commit() returns trigger language plpgsql as $$
       begin if exists (select from fails) then raise exception 'no commit'; end if; return null; end $$;
     create constraint trigger at_commit after insert on messages deferrable initially deferred
       for each row when (new.upstream_id like '%bad') execute function at_commit()`,
  );
  for (let round = 0; round < 10; round += 1) {
    await database.raw('insert into fails values (1)');
    const ids = ['1', '2bad', '3', '4bad', '5', '6'].map((n) => `wamid.${round}-${n}`);
    const answers: Promise<number>[] = [];
    for (const id of ids) {
      answers.push(post(id));
      await new Promise((resolve) => setTimeout(resolve, round % 4));
    }
    expect(new Set(await Promise.all(answers))).toEqual(new Set([200]));
    await database.raw('truncate fails');
    await drainInbox(database, tools);
    const eventIds = (await storedEvents(database)).map(({ eventId }) => eventId);
    expect(eventIds.filter((id) => id.startsWith(`wamid.${round}-`))).toEqual(ids);
  }
  const kept = await query(database, `select 1 from inbox where state = 'new'`);
  expect(kept).toEqual([]);
});
