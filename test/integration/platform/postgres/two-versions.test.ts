import { execFile, spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { findFreePorts } from '../../../../dev/embedded/ports.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { ACCOUNT, bodyOf, textMessage } from '../../../support/load/upstream-bodies.ts';
import { addEndpoint } from '../../../support/test-accounts.ts';
import { seededDatabase } from '../../../support/test-database.ts';
import { testSettings } from '../../../support/test-settings.ts';
import { eventually, startReceiver } from '../../../support/webhook-receiver.ts';
import { signed } from '../../api/api-harness.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
/** The next version: it has one migration more, which expands a table, and writes what that brings. */
function makeNextVersion(): string {
  const directory = mkdtempSync(join(tmpdir(), 'heliograph-next-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  cpSync(join(ROOT, 'src'), join(directory, 'src'), { recursive: true });
  cpSync(join(ROOT, 'package.json'), join(directory, 'package.json'));
  symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
  const change = (path: string, from: string, to: string) => {
    const file = join(directory, 'src', 'platform', 'postgres', path);
    const text = readFileSync(file, 'utf8');
    expect(text, path).toContain(from);
    writeFileSync(file, text.replace(from, to));
  };
  writeFileSync(
    join(directory, 'src/platform/postgres/migrations/9000-next.sql'),
    'alter table worker_processes add column version text;',
  );
  change('worker-processes.ts', '(id, recent_attempts', '(version, id, recent_attempts');
  change('worker-processes.ts', 'values (:id,', `values ('next', :id,`);
  return directory;
}

/** Runs a process of a version as operators do. */
function startProcess(root: string, name: 'api' | 'worker', settings: Record<string, string>) {
  const env = { PATH: process.env.PATH ?? '', ...settings };
  const child = spawn(process.execPath, [join(root, 'src', 'main.ts'), name], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      printed += chunk;
    });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const stop = async () => {
    child.kill('SIGTERM');
    await ended;
  };
  onTestFinished(stop);
  const says = (text: string) =>
    eventually(`${name} says ${text}`, () => printed.includes(text)).catch((error) => {
      throw new Error(`${error.message}:
${printed}`);
    });
  return { stop, says };
}

const migrateBy = (root: string, env: Record<string, string>) =>
  promisify(execFile)(process.execPath, [join(root, 'src', 'main.ts'), 'migrate'], { env });

async function status(port: number): Promise<number> {
  return await fetch(`http://127.0.0.1:${port}/readyz`).then(
    (answer) => answer.status,
    () => 0,
  );
}

test('two versions run together on the expanded schema, and a step back needs nothing of the schema', async () => {
  const { database, url } = await seededDatabase();
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  await addEndpoint(database, ACCOUNT.wabaId, `${receiver.url}/hook`);
  const settings = testSettings(url);
  const [oldPort = 0, nextPort = 0] = await findFreePorts(2);
  const on = (port: number) => ({ ...settings, HELIOGRAPH_API_PORT: String(port) });
  let sent = 0;
  /** Bodies to each of these; upstream gets nothing but 200. */
  const send = async (...ports: number[]) => {
    for (const port of ports.flatMap((each) => [each, each, each])) {
      sent += 1;
      const body = bodyOf(ACCOUNT, [textMessage(`wamid.VERSION${sent}`, 'x')]);
      const address = `http://127.0.0.1:${port}/upstream/webhook`;
      const answer = await fetch(address, { method: 'POST', body, headers: signed(body) });
      expect(answer.status).toBe(200);
    }
  };
  const allDelivered = () =>
    eventually(
      `${sent} delivered`,
      () => new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size === sent,
    );
  const versions = async () =>
    (
      await query<{ v: string }>(
        database,
        `select distinct coalesce(version, 'old') as v from worker_processes order by 1`,
      )
    ).map(({ v }) => v);

  startProcess(ROOT, 'api', on(oldPort));
  const oldWorker = startProcess(ROOT, 'worker', settings);
  await oldWorker.says('worker ready');
  await eventually('the API is ready', () => status(oldPort), { is: 200 });
  await send(oldPort);

  const next = makeNextVersion();
  const nextApi = startProcess(next, 'api', on(nextPort));
  const nextWorker = startProcess(next, 'worker', settings);
  await nextWorker.says('lacks 9000-next');
  await eventually('the next API is not ready', () => status(nextPort), { is: 503 });
  await send(oldPort);

  await migrateBy(next, settings);
  await nextWorker.says('worker ready');
  await eventually('the next API is ready', () => status(nextPort), { is: 200 });
  await send(oldPort, nextPort);
  await eventually('both tell of themselves', async () => (await versions()).join(), { is: 'next,old' });
  expect(await status(oldPort)).toBe(200);
  await allDelivered();

  await Promise.all([nextApi.stop(), nextWorker.stop()]);
  await migrateBy(ROOT, settings);
  expect(await status(oldPort)).toBe(200);
  const fresh = startProcess(ROOT, 'worker', settings);
  await fresh.says('worker ready');
  await oldWorker.stop();
  await send(oldPort);
  await allDelivered();
});
