import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { identifyProcess, isSameProcessAlive } from '../../../../dev/embedded/process-identity.ts';
import { recordProcesses, stopRecordedProcesses } from '../../../../dev/embedded/recorded-processes.ts';
import { temporaryDirectory } from './temporary-directory.ts';

/** A process that ignores the polite signal when told so, once it has said that it is up. */
async function child(stubborn = false): Promise<ChildProcess & { pid: number }> {
  const script = `${stubborn ? "process.on('SIGTERM', () => {});" : ''} console.log('up'); setInterval(() => {}, 1000)`;
  const started = spawn(process.execPath, ['-e', script], {
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  onTestFinished(() => void started.kill('SIGKILL'));
  await once(started.stdout, 'data');
  return Object.assign(started, { pid: started.pid ?? 0 });
}

describe('clean-up of an earlier run', () => {
  test('stops the recorded processes, also one that ignores the request, and names them', async () => {
    const file = join(temporaryDirectory(), 'pids.json');
    const [polite, stubborn] = [await child(), await child(true)];
    recordProcesses(file, [
      { name: 'api', pid: polite.pid, command: process.execPath },
      { name: 'worker', pid: stubborn.pid, command: process.execPath },
    ]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(await stopRecordedProcesses(file, 300)).toEqual(['api', 'worker']);
    expect(identifyProcess(polite.pid)).toBeUndefined();
    expect(identifyProcess(stubborn.pid)).toBeUndefined();
  });

  test.each([
    ['start time', { startTime: '1' }, process.execPath],
    ['boot', { bootId: 'another boot' }, process.execPath],
    ['command line', {}, 'some-other-program'],
  ])('leaves a process alone whose %s is not the recorded one', async (_what, change, command) => {
    const file = join(temporaryDirectory(), 'pids.json');
    const stranger = await child();
    const identity = identifyProcess(stranger.pid);
    writeFileSync(file, JSON.stringify([{ name: 'api', identity: { ...identity, ...change }, command }]));
    expect(await stopRecordedProcesses(file, 100)).toEqual([]);
    expect(identity !== undefined && isSameProcessAlive(identity)).toBe(true);
  });

  test.each(['', '{}', 'null', '[null, 1, "x", {}]', '[{"name":"a","identity":{"pid":-1},"command":"x"}]'])(
    'a damaged record %j harms nothing',
    async (content) => {
      const file = join(temporaryDirectory(), 'pids.json');
      writeFileSync(file, content);
      expect(await stopRecordedProcesses(file, 100)).toEqual([]);
    },
  );

  test('a process that has ended is not written down', async () => {
    const file = join(temporaryDirectory(), 'pids.json');
    const gone = await child();
    gone.kill('SIGKILL');
    await once(gone, 'exit');
    recordProcesses(file, [{ name: 'api', pid: gone.pid, command: process.execPath }]);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual([]);
  });
});
