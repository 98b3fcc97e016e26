import { expect, test } from 'vitest';
import { insertBodies } from '../../../src/database/inbox.ts';
import { query } from '../../../src/database/sql.ts';
import { drainInbox, takeIn } from '../../support/take-in.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';
import { startAdmin } from './admin-cli.ts';

test('admin inbox tells what waits and why, and takes bodies in once more', async () => {
  const { database, json, admin } = await startAdmin();
  await takeIn(database, fixtureBody('odd_unknown_phone_number'));
  await insertBodies(database, [fixtureBody('in_text')]);
  const status = await json('inbox', 'status');
  expect(status).toMatchObject({ waiting: 1, setAside: 1, failed: 0 });
  expect(Date.parse(status.oldestWaitingAt)).toBeLessThanOrEqual(Date.now());
  expect(status.reasons).toContainEqual(expect.objectContaining({ count: 1, field: 'messages' }));
  expect((await admin(['inbox', 'status'])).stdout).toMatch(/^waiting {4}1, since \d{4}.*\nset aside {2}1\n/);

  expect(await json('inbox', 'retry', '--failed-only')).toEqual({ retried: 0 });
  expect(await json('inbox', 'retry')).toEqual({ retried: 1 });
  await drainInbox(database);
  expect(await query(database, 'select state from inbox order by id')).toEqual([
    { state: 'set_aside' },
    { state: 'done' },
  ]);
  expect(await query(database, 'select 1 as one from events')).toHaveLength(1);
});
