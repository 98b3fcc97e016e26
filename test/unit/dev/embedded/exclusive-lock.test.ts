import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { acquireLock, LockHeldError } from '../../../../dev/embedded/exclusive-lock.ts';
import { identifyProcess } from '../../../../dev/embedded/process-identity.ts';
import { temporaryDirectory } from './temporary-directory.ts';

describe('lock file', () => {
  test('is refused while a running process holds it, whose number the error tells', () => {
    const path = join(temporaryDirectory(), 'lock');
    const lock = acquireLock(path);
    expect(() => acquireLock(path)).toThrow(LockHeldError);
    expect(() => acquireLock(path)).toThrow(String(process.pid));
    lock.release();
    acquireLock(path).release();
    expect(existsSync(path)).toBe(false);
  });

  test('is taken over from a process that was killed', async () => {
    const path = join(temporaryDirectory(), 'lock');
    const holder = spawn('sleep', ['60']);
    onTestFinished(() => void holder.kill('SIGKILL'));
    await once(holder, 'spawn');
    writeFileSync(path, JSON.stringify(identifyProcess(holder.pid ?? 0)));
    expect(() => acquireLock(path)).toThrow(LockHeldError);
    holder.kill('SIGKILL');
    await once(holder, 'exit');
    expect(() => acquireLock(path).release()).not.toThrow();
  });

  test('is not kept by another process that got the number of the holder', () => {
    const path = join(temporaryDirectory(), 'lock');
    writeFileSync(path, JSON.stringify({ pid: process.pid, startTime: '1', bootId: 'other' }));
    expect(() => acquireLock(path).release()).not.toThrow();
  });

  test.each(['', '{', 'null', '[]', '{"pid":"x"}'])('is taken over when its content is %j', (content) => {
    const path = join(temporaryDirectory(), 'lock');
    writeFileSync(path, content);
    expect(() => acquireLock(path).release()).not.toThrow();
  });
});
