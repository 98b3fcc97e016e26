import { expect, test } from 'vitest';
import { countInbox, retryInbox } from '../../../src/ingest/bodies/quarantine.ts';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { startAdmin } from '../../support/admin-cli.ts';
import { drainInbox, takeIn } from '../../support/take-in.ts';
import { testDatabase } from '../../support/test-database.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';

test('admin inbox tells what waits and why, and takes bodies in once more', async () => {
  const { database, json, admin } = await startAdmin();
  await takeIn(database, fixtureBody('odd_unknown_phone_number'));
  await insertBodies(database, [fixtureBody('in_text')]);
  const status = await json('inbox', 'status');
  expect(status).toMatchObject({ waiting: 1, quarantined: 1, failed: 0 });
  expect(Date.parse(status.oldestWaitingAt)).toBeLessThanOrEqual(Date.now());
  expect(status.reasons).toContainEqual(expect.objectContaining({ count: 1, field: 'messages' }));
  expect((await admin(['inbox', 'status'])).stdout).toMatch(
    /^waiting {6}1, since \d{4}.*\nquarantined {2}1\n/,
  );

  expect(await json('inbox', 'retry', '--failed-only')).toEqual({ retried: 0 });
  expect(await json('inbox', 'retry')).toEqual({ retried: 1 });
  await drainInbox(database);
  expect(await query(database, 'select state from inbox order by id')).toEqual([
    { state: 'quarantined' },
    { state: 'done' },
  ]);
  expect(await query(database, 'select 1 as one from events')).toHaveLength(1);
});

test('what stays quarantined a second time is counted once', async () => {
  const { database, json } = await startAdmin();
  await takeIn(
    database,
    fixtureBody('odd_unknown_phone_number'),
    // A message without an id.
    Buffer.from(
      fixtureBody('odd_text_4096')
        .toString()
        .replace(/"id": ?"wamid[^"]*",?/, ''),
    ),
    Buffer.from('{"object":'),
  );
  const counts = () =>
    query(database, 'select reason, waba_id, count from quarantine_counts order by reason, waba_id');
  const once = await counts();
  expect(once).toHaveLength(3);
  expect(await json('inbox', 'retry')).toEqual({ retried: 3 });
  await drainInbox(database);
  expect(await counts()).toEqual(once);
  const notes = await query(database, 'select 1 from inbox where notes is not null');
  expect(notes).toHaveLength(3);
});

test('counting a large inbox stops somewhere; taking it in once more is done page by page, oldest first', async () => {
  const { database } = await testDatabase();
  await database.raw(
    `insert into inbox (body, state) select 'x', case n % 2 when 0 then 'failed' else 'quarantined' end
       from generate_series(1, 100050) as n`,
  );
  await database.raw(`update inbox set state = 'failed' where id > 50000`);
  expect(await countInbox(database, ['new', 'quarantined', 'failed'])).toEqual({
    new: 0,
    quarantined: 25_000,
    failed: 75_050,
  });
  expect(await retryInbox(database, ['failed'])).toBe(75_050);
  expect(await retryInbox(database, ['failed', 'quarantined'])).toBe(25_000);
  expect(await countInbox(database, ['new', 'quarantined', 'failed'])).toEqual({
    new: 100_001,
    quarantined: 0,
    failed: 0,
  });
  expect(await countInbox(database, ['failed'])).toEqual({ failed: 0 });
});
