import { randomBytes, randomUUID } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { reconcileCommand } from '../../../src/ops/reconcile/commands/reconcile-command.ts';
import type { Finding } from '../../../src/ops/reconcile/findings.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { TASK_KINDS } from '../../../src/worker/task-kinds.ts';
import { runHere } from '../../support/admin-cli.ts';
import { testSettings } from '../../support/test-settings.ts';
import { WABA } from '../messages/media/media-stack.ts';
import {
  announcements,
  differences,
  expectMended,
  expectStored,
  FIX,
  JPEG,
  LOOK,
  mediaOf,
  type ReconcileStack,
  startReconcileStack,
  storedPicture,
} from './reconcile-stack.ts';

const HOUR_MS = 3_600_000;

let stack: ReconcileStack;

beforeAll(async () => {
  stack = await startReconcileStack();
});
afterAll(async () => await stack?.stop());

describe('files', () => {
  test('a stored file whose object is gone is fetched again under its address, and not announced twice', async () => {
    const { upstreamId, row } = await storedPicture(stack);
    expect(await differences(stack, LOOK)).toEqual({});
    await stack.objectStore.remove(row.objectKey);
    await expectMended(stack, 'media_without_object');
    await expectStored(stack, upstreamId);
    expect(await mediaOf(stack, upstreamId)).toEqual(row);
    expect((await buffer(await stack.objectStore.getRange(row.objectKey))).equals(JPEG)).toBe(true);
    expect(await announcements(stack, upstreamId)).toBe(1);
    expect(await differences(stack, LOOK)).toEqual({});
  });

  test('one of another length counts as gone', async () => {
    const { upstreamId, row } = await storedPicture(stack);
    await stack.objectStore.put(row.objectKey, cut(JPEG), { contentType: 'application/octet-stream' });
    await expectMended(stack, 'media_without_object');
    await expectStored(stack, upstreamId);
    expect((await buffer(await stack.objectStore.getRange(row.objectKey))).equals(JPEG)).toBe(true);
  });

  test('one that upstream no longer has ends as lost, so that nobody asks for it in vain', async () => {
    const { upstreamId, row } = await storedPicture(stack);
    await stack.objectStore.remove(row.objectKey);
    const age = `update media set created_at = now() - interval '31 days' where message_id = :id`;
    await query(stack.database, age, { id: row.id });
    await expectMended(stack, 'media_without_object');
    expect(await mediaOf(stack, upstreamId)).toMatchObject({
      state: 'failed',
      errorCode: 'media_lost',
      objectKey: null,
    });
    expect(await differences(stack, LOOK)).toEqual({});
  });

  test('an upload whose object is gone is given up', async () => {
    const id = randomUUID();
    await query(
      stack.database,
      `insert into media_uploads (id, waba_id, state, object_key, size_bytes, expires_at)
       values (:id, :waba, 'ready', :id2, 10, now() + interval '1 day')`,
      { id, waba: WABA, id2: `uploads/${id}` },
    );
    await expectMended(stack, 'upload_without_object');
    const rows = await query(stack.database, 'select state from media_uploads where id = :id', { id });
    expect(rows).toEqual([{ state: 'deleted' }]);
  });

  test('an object that no row names stays, until an age is given that it has', async () => {
    const key = `left-${randomBytes(8).toString('hex')}`;
    await stack.objectStore.put(key, cut(JPEG), { contentType: 'image/jpeg' });
    const left = { object_without_row: { found: 1, fixed: 0, left: 1 } };
    expect(await differences(stack, FIX)).toMatchObject(left);
    expect(await differences(stack, { ...FIX, removeObjectsAfterMs: HOUR_MS })).toMatchObject(left);
    expect(await differences(stack, { ...LOOK, removeObjectsAfterMs: 0 })).toMatchObject(left);
    expect((await differences(stack, FIX)).object_without_row?.examples.join()).not.toContain(key);
    await expectMended(stack, 'object_without_row', { ...FIX, removeObjectsAfterMs: 0 });
    await expect(stack.objectStore.stat(key)).rejects.toThrow(/no object/);
  });

  test('an object of a file that was erased goes', async () => {
    const key = `erased-${randomBytes(8).toString('hex')}`;
    await stack.objectStore.put(key, cut(JPEG), { contentType: 'image/jpeg' });
    await query(stack.database, 'insert into erased_files (message_id, object_key) values (:value, :key)', {
      value: 1,
      key,
    });
    await expectMended(stack, 'erased_object');
    await expect(stack.objectStore.stat(key)).rejects.toThrow(/no object/);
  });
});

async function* cut(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes.subarray(0, 100);
}

describe('the command', () => {
  const run = (env: Record<string, string>, args: string[]) =>
    runHere(reconcileCommand(TASK_KINDS), env, args);
  const settings = () =>
    testSettings(stack.config.database.url, {
      HELIOGRAPH_TEMPORAL_TASK_QUEUE_PREFIX: stack.config.temporal.taskQueuePrefix,
      HELIOGRAPH_OBJECT_STORE_BUCKET: stack.config.objectStore.bucket,
    });

  test('looks and says so with its exit code; --fix fixes', async () => {
    await query(stack.database, 'delete from workflow_tasks');
    const { upstreamId, row } = await storedPicture(stack);
    await stack.objectStore.remove(row.objectKey);
    const look = await run(settings(), []);
    expect([look.exitCode, look.stderr]).toEqual([1, '']);
    expect(look.stdout).toMatch(/^media_without_object +1 +0 +1 /m);
    const fix = await run(settings(), ['--fix', '--json']);
    expect(fix.exitCode, fix.stdout).toBe(0);
    const { ok, findings } = JSON.parse(fix.stdout) as { ok: boolean; findings: Finding[] };
    expect(ok).toBe(true);
    expect(findings.find(({ kind }) => kind === 'media_without_object')).toMatchObject({
      found: 1,
      fixed: 1,
    });
    await expectStored(stack, upstreamId);
    expect((await run(settings(), ['--dry-run'])).exitCode).toBe(0);
  });

  test('what cannot be looked at stops nothing else and is no success', async () => {
    const away = { ...settings(), HELIOGRAPH_OBJECT_STORE_URL: 'http://127.0.0.1:9' };
    const { exitCode, stdout } = await run(away, []);
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^media_without_object .*NOT FINISHED: The object store is not available/m);
    expect(stdout).toMatch(/^task_without_workflow +0 +0 +0 +pending work/m);
    expect(stdout).toMatch(/\d of \d+ checks could not be completed\.\n$/);
    expect(await run(settings(), ['--fix', '--dry-run'])).toMatchObject({
      exitCode: 2,
    });
  });
});
