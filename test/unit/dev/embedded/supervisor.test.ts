import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { commandLineOf, identifyProcess } from '../../../../dev/embedded/process-identity.ts';
import type { PartDefinition } from '../../../../dev/embedded/process-part.ts';
import {
  createSupervisor,
  PartFailedError,
  SupervisorStoppedError,
} from '../../../../dev/embedded/supervisor.ts';
import { temporaryDirectory } from './temporary-directory.ts';

const STAY = 'setInterval(() => {}, 1000);';

function setUp(restartDelayMs = 10, pause?: (pauseMs: number) => Promise<void>) {
  const directory = temporaryDirectory();
  const journal = join(directory, 'journal');
  appendFileSync(journal, '');
  const lines: string[] = [];
  const gaveUp: Error[] = [];
  const supervisor = createSupervisor({
    log: (line) => void lines.push(line),
    recordFile: join(directory, 'pids.json'),
    onGiveUp: (error) => void gaveUp.push(error),
    restartDelayMs,
    ...(pause === undefined ? {} : { pause }),
  });
  onTestFinished(() => supervisor.stop());
  /** A part that runs JavaScript; it is ready once it has written its name into the journal. */
  function part(name: string, script: string, changes: Partial<PartDefinition> = {}): PartDefinition {
    const write = `const note = (text) => require('node:fs').appendFileSync(${JSON.stringify(journal)}, text + '\\n');`;
    return {
      name,
      command: process.execPath,
      args: ['-e', `${write}${script}`],
      env: process.env,
      logFile: join(directory, 'logs', `${name}.log`),
      stopSignal: 'SIGTERM',
      stopGraceMs: 1_000,
      isReady: async () => entries().includes(`${name} up`),
      ...changes,
    };
  }
  const entries = () => readFileSync(journal, 'utf8').split('\n').slice(0, -1);
  return { directory, supervisor, part, entries, lines, gaveUp };
}

const noting = (name: string) =>
  `process.on('SIGTERM', () => { note('${name} stopped'); process.exit(0); }); note('${name} up'); ${STAY}`;

function runningWith(text: string, pids: readonly number[]): number[] {
  return pids.filter((pid) => identifyProcess(pid) !== undefined && commandLineOf(pid).includes(text));
}

describe('supervisor', () => {
  test('a crash is reported with its reason and last log lines, and the part is started again', async () => {
    const { supervisor, part, entries, lines, directory } = setUp();
    const script = `note('worker up'); for (let i = 1; i <= 30; i++) console.log('line ' + i); console.error('the end');
      if (require('node:fs').readFileSync('${join(directory, 'journal')}', 'utf8').split('up').length < 3)
        setTimeout(() => process.exit(7), 100); else { ${STAY} }`;
    await supervisor.start(part('worker', script));
    const firstPid = supervisor.pids().worker;
    await vi.waitFor(() => expect(lines.at(-1)).toMatch(/worker is ready again/), 5_000);
    const report = lines[0] ?? '';
    expect(report).toContain('worker stopped unexpectedly (exit code 7). Its last lines:');
    expect(report.match(/\| .*/g)).toHaveLength(20);
    expect(report).toContain('| line 30');
    expect(report).toContain('| the end');
    expect(report).not.toContain('| line 10\n');
    expect(supervisor.pids().worker).not.toBe(firstPid);
    await vi.waitFor(() => expect(entries()).toEqual(['worker up', 'worker up']), 5_000);
  });

  test('a kill is reported as a signal', async () => {
    const { supervisor, part, lines } = setUp();
    await supervisor.start(part('api', noting('api')));
    process.kill(supervisor.pids().api ?? 0, 'SIGKILL');
    await vi.waitFor(() => expect(lines[0]).toContain('api stopped unexpectedly (signal SIGKILL)'), 5_000);
  });

  test('stop ends the parts one after the other, the last started first, and leaves no process', async () => {
    const { supervisor, part, entries } = setUp();
    const slow = `process.on('SIGTERM', () => setTimeout(() => { note('c stopped'); process.exit(0); }, 200)); note('c up'); ${STAY}`;
    for (const [name, script] of [
      ['a', noting('a')],
      ['b', noting('b')],
      ['c', slow],
    ] as const) {
      await supervisor.start(part(name, script));
    }
    const pids = Object.values(supervisor.pids());
    expect(pids).toHaveLength(3);
    await supervisor.stop();
    expect(entries().slice(3)).toEqual(['c stopped', 'b stopped', 'a stopped']);
    expect(pids.filter((pid) => identifyProcess(pid) !== undefined)).toEqual([]);
    expect(supervisor.pids()).toEqual({});
  });

  test('a part that ignores the request is killed with its children after the grace time', async () => {
    const { supervisor, part, directory } = setUp();
    const script = `process.on('SIGTERM', () => {});
      const child = require('node:child_process').spawn('sleep', ['61.25'], { stdio: 'ignore' });
      note(String(child.pid)); note('stubborn up'); ${STAY}`;
    await supervisor.start(part('stubborn', script, { stopGraceMs: 200 }));
    const grandchild = Number(readFileSync(join(directory, 'journal'), 'utf8').split('\n')[0]);
    expect(runningWith('61.25', [grandchild])).toEqual([grandchild]);
    await supervisor.stop();
    await vi.waitFor(() => expect(runningWith('61.25', [grandchild])).toEqual([]));
  });

  test('kill ends everything at once', async () => {
    const { supervisor, part } = setUp();
    await supervisor.start(
      part('a', `process.on('SIGTERM', () => {}); note('a up'); ${STAY}`, { stopGraceMs: 60_000 }),
    );
    const pid = supervisor.pids().a ?? 0;
    const stopped = supervisor.stop();
    supervisor.kill();
    await stopped;
    expect(identifyProcess(pid)).toBeUndefined();
  });

  test('after five restarts within a minute it gives up, stops the others and says why', async () => {
    const { supervisor, part, entries, gaveUp, lines } = setUp(1);
    await supervisor.start(part('steady', noting('steady')));
    await supervisor.start(
      part('broken', `note('broken up'); console.log('no licence'); setTimeout(() => process.exit(3), 80)`),
    );
    await vi.waitFor(() => expect(gaveUp).toHaveLength(1), 15_000);
    expect(entries().filter((entry) => entry === 'broken up')).toHaveLength(6);
    expect(gaveUp[0]?.message).toContain('broken crashed 6 times within 60 s');
    expect(gaveUp[0]?.message).toContain('| no licence');
    expect(entries().at(-1)).toBe('steady stopped');
    expect(supervisor.pids()).toEqual({});
    expect(lines.filter((line) => line === 'restarting broken')).toHaveLength(5);
  });

  test('the pauses between restarts double', async () => {
    const pauses: number[] = [];
    const { supervisor, part, gaveUp } = setUp(500, async (pauseMs) => void pauses.push(pauseMs));
    await supervisor.start(part('broken', `note('broken up'); setTimeout(() => process.exit(3), 60)`));
    await vi.waitFor(() => expect(gaveUp).toHaveLength(1), 15_000);
    expect(pauses).toEqual([500, 1_000, 2_000, 4_000, 8_000]);
  });

  test('a part that ends before it is ready fails the start with its last lines', async () => {
    const { supervisor, part } = setUp();
    const start = supervisor.start(part('api', `console.error('cannot read settings'); process.exit(2)`));
    const error = await start.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(PartFailedError);
    expect(String(error)).toContain('api did not start (exit code 2)');
    expect(String(error)).toContain('| cannot read settings');
  });

  test('a part that prints nothing and does not get ready fails the start after its time', async () => {
    const { supervisor, part } = setUp();
    const start = supervisor.start(part('api', STAY, { silenceTimeoutMs: 300 }));
    await expect(start).rejects.toThrow('api was not ready, and has printed nothing for 0.3 s');
  });

  test('a part is waited for while it prints, however long it takes', async () => {
    const { supervisor, part } = setUp();
    const silenceTimeoutMs = 5_000;
    const slow = `let n = 0; setInterval(() => { console.log('step ' + ++n); if (n === 60) note('api up'); }, 100)`;
    const begin = performance.now();
    await supervisor.start(part('api', slow, { silenceTimeoutMs }));
    expect(performance.now() - begin).toBeGreaterThan(silenceTimeoutMs);
  });

  test('lines of a report have 200 characters at most', async () => {
    const { supervisor, part } = setUp();
    const start = supervisor.start(part('api', `console.log('x'.repeat(5000)); process.exit(2)`));
    const report = String(await start.catch((reason: unknown) => reason));
    expect(report).toContain('| xxx');
    expect(Math.max(...report.split('\n').map((line) => line.length))).toBeLessThanOrEqual(200);
  });

  test('servers end after the parts that use them, whenever they were started', async () => {
    const { supervisor, part, entries } = setUp();
    await supervisor.start(part('app', noting('app')));
    await supervisor.start(part('late', noting('late'), { isServer: true }));
    await supervisor.stop();
    expect(entries().slice(2)).toEqual(['app stopped', 'late stopped']);
  });

  test('a program that does not exist is a clear failure', async () => {
    const { supervisor, part } = setUp();
    const start = supervisor.start(part('minio', '', { command: '/nonexistent/minio', args: [] }));
    await expect(start).rejects.toThrow(/minio did not start/);
  });

  test('stop during a start interrupts it and leaves no process', async () => {
    const { supervisor, part } = setUp();
    const start = supervisor.start(part('api', STAY)).catch((reason: unknown) => reason);
    await vi.waitFor(() => expect(supervisor.pids().api).toBeDefined());
    const pid = supervisor.pids().api ?? 0;
    await supervisor.stop();
    expect(await start).toBeInstanceOf(SupervisorStoppedError);
    expect(identifyProcess(pid)).toBeUndefined();
  });

  test('stop during the pause before a restart leaves the part stopped', async () => {
    const { supervisor, part, lines, entries } = setUp(400);
    await supervisor.start(part('api', `note('api up'); setTimeout(() => process.exit(1), 50)`));
    await vi.waitFor(() => expect(lines).toHaveLength(1), 5_000);
    await supervisor.stop();
    await delay(500);
    expect(entries()).toEqual(['api up']);
    expect(supervisor.pids()).toEqual({});
  });

  test('the record of running processes and the listener follow every start and end', async () => {
    const directory = temporaryDirectory();
    const seen: Record<string, number>[] = [];
    const recordFile = join(directory, 'pids.json');
    const supervisor = createSupervisor({
      log: () => undefined,
      recordFile,
      restartDelayMs: 10,
      onPidChange: (pids) => void seen.push({ ...pids }),
    });
    onTestFinished(() => supervisor.stop());
    await supervisor.start({ ...setUp().part('api', STAY), isReady: async () => true });
    const first = supervisor.pids().api ?? 0;
    expect(JSON.parse(readFileSync(recordFile, 'utf8'))).toMatchObject([
      { name: 'api', identity: { pid: first } },
    ]);
    process.kill(first, 'SIGKILL');
    await vi.waitFor(() => expect(seen).toHaveLength(3), 5_000);
    expect(seen[1]).toEqual({});
    expect(seen[2]?.api).not.toBe(first);
    await supervisor.stop();
    expect(seen.at(-1)).toEqual({});
    expect(JSON.parse(readFileSync(recordFile, 'utf8'))).toEqual([]);
  });
});
