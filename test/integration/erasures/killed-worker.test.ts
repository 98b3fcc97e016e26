import { mkdtemp, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { verifyReport } from '../../../src/ops/erasures/erasure-report.ts';
import { type ErasureView, eraseCustomer, erasureOf } from '../../../src/ops/erasures/erasures.ts';
import { connectTemporal } from '../../../src/platform/temporal/worker-connection.ts';
import { runAdmin } from '../../support/admin-cli.ts';
import { objectsHolding, tablesHolding } from '../../support/database-scan.ts';
import { takeIn } from '../../support/take-in.ts';
import { drawIdsApart } from '../../support/test-database.ts';
import { startWorkerProcess, type WorkerProcess } from '../../support/worker-process.ts';
import {
  bodyOf,
  contactOf,
  count,
  messageOf,
  person,
  startErasureWorld,
  storeFile,
  WABA,
} from './erasure-world.ts';

const ASHA = person('Asha', '5511987650143');
const MESSAGES = 1_500;
const FILES = 20;
const KILLS = 3;

test('a worker that is killed again and again loses nothing of an erasure and counts nothing twice', async () => {
  const world = await startErasureWorld();
  const { database, tools, config, settings } = world;
  await drawIdsApart(database);
  for (let at = 0; at < MESSAGES; at += 250) {
    const messages = Array.from({ length: 250 }, (_, index) => {
      const n = at + index;
      const image = { type: 'image', image: { id: String(n), mime_type: 'image/jpeg', caption: ASHA.text } };
      return messageOf(ASHA, n, n < FILES ? image : {});
    });
    await takeIn(database, bodyOf([{ contacts: [contactOf(ASHA)], messages }]));
  }
  for (let n = 0; n < FILES; n += 1) await storeFile(world, ASHA.wamid(n), Buffer.from(`${ASHA.name} ${n}`));
  const events = await count(database, 'events');
  const archive = join(await mkdtemp(join(tmpdir(), 'export-')), 'customer.zip');
  const exported = ['export', 'customer', '--waba', WABA, '--phone', ASHA.waId, '--output', archive];
  expect(await runAdmin(settings, exported)).toMatchObject({ exitCode: 0 });
  const written = await readFile(archive);
  for (const name of ['messages.ndjson', `files/`]) expect(written.includes(name)).toBe(true);
  const { erasureId, subjectId } = await eraseCustomer(tools, WABA, { phone: ASHA.waId });
  const now = () => erasureOf(tools, WABA, erasureId);
  let worker: WorkerProcess | null = null;
  onTestFinished(async () => await worker?.kill());
  for (let kills = 0; kills < KILLS; kills += 1) {
    const before = (await now()).counts.messages ?? 0;
    worker = startWorkerProcess(settings);
    await until(now, ({ state, counts }) => state === 'done' || (counts.messages ?? 0) > before);
    await worker.kill();
  }
  worker = startWorkerProcess(settings);
  await until(now, ({ state }) => state === 'done');
  const done = await now();
  expect(done.counts).toMatchObject({
    messages: MESSAGES,
    files: FILES,
    events,
    contacts: 1,
    conversations: 1,
  });
  expect(verifyReport(done.report, tools.encryptionKeys)).toBe('valid');
  expect(await tablesHolding(database, [ASHA.waId, ASHA.name, ASHA.text])).toEqual([]);
  expect(await objectsHolding(config, [ASHA.name])).toEqual({ all: [], holding: [] });
  const { connection, client } = await connectTemporal(config.temporal);
  onTestFinished(() => connection.close());
  const run = client.workflow.getHandle(`eraseCustomer/${subjectId}`);
  expect(await run.result()).toMatch(/^Done: \d+ rows and files erased\.$/);
  const history = JSON.stringify(await run.fetchHistory());
  for (const trace of [ASHA.waId, ASHA.name, ASHA.text]) expect(history).not.toContain(trace);
  await checkCommands(settings, erasureId);
});

/** What the commands say of an erasure that is done, and of a report that was changed. */
async function checkCommands(settings: Record<string, string>, id: string): Promise<void> {
  const listed = await runAdmin(settings, ['erasures', 'list', '--json']);
  expect(JSON.parse(listed.stdout)).toMatchObject([{ erasureId: id, kind: 'customer', state: 'done' }]);
  const { stdout: report } = await runAdmin(settings, ['erasures', 'show', id, '--report']);
  const verify = async (text: string) => await runAdmin(settings, ['erasures', 'verify', '-'], text);
  expect(await verify(report)).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^valid/) });
  const changed = report.replace(`"messages": ${MESSAGES}`, '"messages": 1');
  expect(await verify(changed)).toMatchObject({ exitCode: 1, stdout: expect.stringMatching(/^invalid/) });
  const again = ['erase', 'customer', '--waba', WABA, '--phone', ASHA.waId];
  expect(await runAdmin(settings, again)).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('--yes'),
  });
  const unknown = await runAdmin(settings, [...again, '--yes']);
  expect(unknown).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('no such customer') });
}

async function until(
  read: () => Promise<ErasureView>,
  isSo: (erasure: ErasureView) => boolean,
): Promise<void> {
  for (const deadlineMs = performance.now() + 120_000; ; await sleep(5)) {
    const erasure = await read();
    if (isSo(erasure)) return;
    if (performance.now() > deadlineMs) throw new Error(`it does not go on: ${JSON.stringify(erasure)}`);
  }
}
