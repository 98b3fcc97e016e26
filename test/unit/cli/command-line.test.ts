import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Command } from '../../../clients/cli/src/command.ts';
import { timeOf } from '../../../clients/cli/src/commands-events.ts';
import { completionScript } from '../../../clients/cli/src/completion.ts';
import { makeOutput, printable, table } from '../../../clients/cli/src/output.ts';
import { openProfile } from '../../../clients/cli/src/profile.ts';
import { readArguments } from '../../../clients/cli/src/run.ts';
import { directory, runCommand } from './run-cli.ts';

const KEY = `ck_${'1'.repeat(64)}`;
const OTHER_KEY = `ck_${'2'.repeat(64)}`;

const heliograph = (...args: string[]) => runCommand(args);

describe('the command line', () => {
  test('shows help for the tool and for each of its commands', async () => {
    const { stdout, exitCode } = await heliograph('--help');
    expect(exitCode).toBe(0);
    const names = [...stdout.matchAll(/^ {2}([a-z]+) .*$/gm)].map(([, name]) => name ?? '');
    expect(names).toEqual(
      expect.arrayContaining(['login', 'listen', 'trigger', 'verify', 'doctor', 'completion']),
    );
    for (const name of names) {
      const help = await heliograph(name, '--help');
      expect([name, help.exitCode, help.stdout]).toEqual([name, 0, expect.stringContaining('--json')]);
    }
  });

  test.each([
    [['lsten'], 2, /no command "lsten"\. Do you mean .*listen/],
    [['events', '--stat', 'failed'], 2, /Unknown option '--stat'/],
    [
      ['events', '--since', '-1h'],
      2,
      /^Option '--since' argument is ambiguous\. See heliograph events --help\.\n$/,
    ],
    [['trigger'], 2, /Usage: heliograph trigger <sample>/],
    [['trigger', 'picture'], 2, /There is no sample "picture"/],
    [['listen'], 2, /--forward-to/],
    [['listen', '--forward-to', 'ftp://x'], 2, /is no URL that begins with/],
    [['verify', '--secret', 'x'], 2, /--body/],
    [['events'], 3, /not logged in/],
    [['events', '--url', 'http://127.0.0.1:9'], 3, /not logged in/],
  ])('refuses %j with %i and clear words', async (args, exitCode, words) => {
    const result = await heliograph(...args);
    expect([result.exitCode, result.stderr]).toEqual([exitCode, expect.stringMatching(words)]);
  });

  test('takes options that are repeated, and no operand too many', () => {
    const command: Command = {
      name: 'x',
      summary: '',
      options: { header: { type: 'string', help: '', multiple: true } },
      run: async () => 0,
    };
    expect(readArguments(command, ['--header', 'a: 1', '--header=b: 2']).values.header).toEqual([
      'a: 1',
      'b: 2',
    ]);
    expect(() => readArguments(command, ['y'])).toThrow('Usage');
  });

  test('understands times of the past', () => {
    expect(timeOf('2h', 'since', Date.parse('2026-11-21T09:30:00Z'))).toBe('2026-11-21T07:30:00.000Z');
    expect(timeOf('2026-11-21T09:30:00+05:30', 'since')).toBe('2026-11-21T04:00:00.000Z');
    expect(() => timeOf('soon', 'since')).toThrow('--since');
  });

  test('completes commands, options and samples in each shell', async () => {
    for (const shell of ['bash', 'zsh', 'fish']) {
      const { stdout } = await heliograph('completion', shell);
      for (const word of ['listen', 'forward-to', 'status.failed'])
        expect([shell, stdout]).toEqual([shell, expect.stringContaining(word)]);
    }
    expect(() => completionScript('powershell', [])).toThrow('bash, zsh, fish');
  });
});

describe('the profile', () => {
  test('keeps the key in a file that only its owner can read, and says so of one that others can', () => {
    const env = { HELIOGRAPH_CONFIG_DIR: join(directory(), 'deep') };
    const profile = openProfile(env);
    const path = profile.save({ url: 'https://gateway.example', apiKey: KEY }, false);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(profile.openFile()).toBeNull();
    expect(profile.account({})).toEqual({ url: 'https://gateway.example', apiKey: KEY });
    writeFileSync(path, readFileSync(path), { mode: 0o644 });
    expect(openProfile({ ...env, HELIOGRAPH_API_KEY: OTHER_KEY }).account({}).apiKey).toBe(OTHER_KEY);
    expect([profile.remove(), profile.remove()]).toEqual([true, false]);
    expect(() => profile.account({})).toThrow('not logged in');
  });
});

describe('output', () => {
  test('has columns as wide as their cells, colours aside', () => {
    const written: string[] = [];
    const stream = { isTTY: true, write: (text: string) => written.push(text) > 0 };
    const { line, style } = makeOutput(stream, stream, { FORCE_COLOR: '1' });
    line(table(['A', 'B'], [[style('red', 'long'), 'x']]));
    expect(written.join('')).toBe('A     B\n\u001b[31mlong\u001b[0m  x\n');
  });

  test('of others obeys nothing in a terminal', () => {
    expect(printable('a\u001b[2Jb\u009b1m')).toBe('a\ufffd[2Jb\ufffd1m');
  });
});
