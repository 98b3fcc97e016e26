import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, inject, onTestFinished, test } from 'vitest';
import { sendPicture } from './support/customer.ts';
import { oldestNode } from './support/programs.ts';
import { PROJECT } from './support/stack.ts';

const run = promisify(execFile);

type Run = { exitCode: number; stdout: string; stderr: string };

/** Runs `heliograph X` as the operator's documents say, with the oldest Node.js that they may have. */
async function heliograph(args: string[], env: Record<string, string> = {}): Promise<Run> {
  const command = ['bin/heliograph.js', ...args, '--data-dir', inject('stack').dataDir];
  try {
    const output = await run(oldestNode(), command, { cwd: PROJECT, env: { ...process.env, ...env } });
    return { exitCode: 0, ...output };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { exitCode: code, stdout, stderr };
  }
}

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'heliograph-operator-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

test('doctor finds every server of a healthy npm start in order, and blames none of its own parts', async () => {
  const { exitCode, stdout, stderr } = await heliograph(['doctor', '--json']);
  expect(stderr).toBe('');
  const { checks } = JSON.parse(stdout) as { checks: { name: string; status: string; detail: string }[] };
  expect(checks.filter(({ status }) => status === 'fail')).toEqual([]);
  expect(exitCode).toBe(0);
  for (const name of [
    'settings',
    'database',
    'roles',
    'temporal',
    'object store',
    'upstream',
    'public address',
  ])
    expect(
      checks.filter((check) => check.name === name).map(({ status }) => status),
      name,
    ).not.toContain('warn');
});

test('reconcile makes every check of a healthy npm start and finds nothing to do', async () => {
  const { exitCode, stdout, stderr } = await heliograph(['reconcile', '--dry-run', '--json']);
  expect(stderr).toBe('');
  const { findings } = JSON.parse(stdout) as { findings: { kind: string; problem: string | null }[] };
  expect(findings.filter(({ problem }) => problem !== null)).toEqual([]);
  expect(exitCode).toBe(0);
});

test('export writes an archive with the files of a customer of npm start', async () => {
  const phone = `1202555${Math.floor(1_000 + Math.random() * 9_000)}`;
  await sendPicture(phone, randomBytes(2_000));
  const output = join(folder(), 'customer.zip');
  const customer = ['--waba', '900000000000101', '--phone', phone];
  const { exitCode, stderr } = await heliograph([
    'admin',
    'export',
    'customer',
    ...customer,
    '--output',
    output,
  ]);
  expect(stderr).toBe('');
  expect(exitCode).toBe(0);
  expect(statSync(output).size).toBeGreaterThan(2_000);
});
