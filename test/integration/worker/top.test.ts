import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { reportWorker } from '../../../src/platform/postgres/worker-processes.ts';
import { MAIN_SCRIPT, startAdmin, WABA } from '../../support/admin-cli.ts';
import { addEndpoint } from '../../support/test-accounts.ts';

test('admin top shows traffic, backlog, failing and busy endpoints and workers, plain where there is no terminal', async () => {
  const { database, admin, settings } = await startAdmin();
  const { id: busy } = await addEndpoint(database, WABA, 'https://busy.example/hook?key=hush-hush');
  const { id: failing } = await addEndpoint(database, WABA, 'https://failing.example/hook');
  const minutes = `insert into endpoint_minutes (endpoint_id, minute, successes, failures, total_ms)
                   values (:id, date_trunc('minute', now()), :successes, :failures, :totalMs)`;
  await query(database, minutes, { id: busy, successes: 600, failures: 0, totalMs: 6_000 });
  await query(database, minutes, { id: failing, successes: 1, failures: 30, totalMs: 31_000 });
  await insertBodies(database, [Buffer.from('{}')]);
  await reportWorker(database, 'host-1:42');
  await query(database, `update worker_processes set seen_at = now() + interval '1 hour'`);
  const [{ stdout, exitCode }, said, screen] = await Promise.all([
    admin(['top']),
    admin(['top', '--json']),
    topInTerminal(settings),
  ]);
  expect(exitCode).toBe(0);
  expect(stdout).not.toContain('\x1b');
  expect(stdout).toMatch(/^workers +1: host-1:42$/m);
  expect(stdout).toMatch(/^inbox +1 bodies wait/m);
  const rows = stdout.split('\n').filter((line) => line.includes(WABA));
  expect(rows[0]).toMatch(new RegExp(`^${failing} .* 1 +30 +1000 ms +https://failing\\.example`));
  expect(rows[1]).toMatch(new RegExp(`^${busy} .* 600 +0 +10 ms +https://busy\\.example`));
  expect(stdout + said.stdout + screen).not.toContain('hush-hush');
  const { attemptsPerSecond, endpoints, workers } = JSON.parse(said.stdout);
  expect(attemptsPerSecond.delivered).toBeGreaterThan(601 / 121);
  expect(attemptsPerSecond.delivered).toBeLessThanOrEqual(601 / 60);
  expect([endpoints.length, workers]).toEqual([2, ['host-1:42']]);
  const [, live, after] = screen.split(/.\[\?1049[hl]/);
  expect(live).toMatch(/workers +1: host-1:42/);
  expect(after).toMatch(/workers +1: host-1:42/);
  expect(after).toMatch(/ended with 0.* icanon .* echo /s);
});

/** What a terminal of 80×24 shows of it when q is pressed after a while; `script` makes one. */
async function topInTerminal(settings: Record<string, string>): Promise<string> {
  const command = `stty cols 80 rows 24; "${process.execPath}" "${MAIN_SCRIPT}" admin top; echo "ended with $?"; stty -a`;
  const child = promisify(execFile)('script', ['-qec', command, '/dev/null'], {
    env: { PATH: process.env.PATH ?? '', ...settings },
  });
  child.child.stdin?.write('q');
  return (await child).stdout;
}
