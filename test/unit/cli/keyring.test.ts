import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openKeyring } from '../../../clients/cli/src/keyring.ts';
import { openProfile } from '../../../clients/cli/src/profile.ts';

const KEY = `ck_${'a1'.repeat(32)}`;
const URL = 'https://gateway.example/a"b';

/** The programs of the platforms, as far as the tool uses them: each keeps one secret in a file, and its arguments in another. */
const PROGRAMS = {
  linux: {
    name: 'secret-tool',
    script: `case "$1" in
      store) cat > "$DIR/secret" ;;
      lookup) cat "$DIR/secret" 2>/dev/null || exit 1 ;;
      clear) rm -f "$DIR/secret" ;;
    esac`,
  },
  darwin: {
    name: 'security',
    script: `case "$1" in
      -i) sed 's/.* -w "\\(.*\\)"$/\\1/' > "$DIR/secret" ;;
      find-generic-password) cat "$DIR/secret" 2>/dev/null || exit 44 ;;
      delete-generic-password) rm -f "$DIR/secret" ;;
    esac`,
  },
  win32: {
    name: 'powershell.exe',
    script: `input="$(cat)"
    case "$input" in
      *'"action":"store"'*) printf '%s' "$input" | sed 's/.*"apiKey":"\\([^"]*\\)".*/\\1/' > "$DIR/secret" ;;
      *'"action":"read"'*) cat "$DIR/secret" 2>/dev/null || exit 1 ;;
      *) rm -f "$DIR/secret" ;;
    esac`,
  },
} as const;

type Platform = keyof typeof PROGRAMS;

function machine(platform: Platform, script: string = PROGRAMS[platform].script) {
  const directory = mkdtempSync(join(tmpdir(), 'heliograph-keyring-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const program = join(directory, PROGRAMS[platform].name);
  const text = `#!/bin/sh\nDIR='${directory}'\nprintf '%s\\n' "$@" >> "$DIR/arguments"\n${script}\n`;
  writeFileSync(program, text);
  chmodSync(program, 0o755);
  const env = { PATH: `${directory}:/usr/bin:/bin`, HELIOGRAPH_CONFIG_DIR: join(directory, 'config') };
  return { directory, env, profile: openProfile(env, openKeyring(env, platform)) };
}

const PLATFORMS = Object.keys(PROGRAMS) as Platform[];

test.each(PLATFORMS)(
  'on %s the key is in the key ring alone, is read from there, and goes with logout',
  (platform) => {
    const { directory, profile } = machine(platform);
    expect(profile.save({ url: URL, apiKey: KEY }, true)).toBe('the key ring');
    expect(readFileSync(join(directory, 'config', 'login.json'), 'utf8')).not.toContain(KEY);
    expect(profile.account({})).toEqual({ url: 'https://gateway.example/a%22b', apiKey: KEY });
    // Arguments of processes are there for every user of the machine to see.
    expect(readFileSync(join(directory, 'arguments'), 'utf8')).not.toContain(KEY);
    expect(profile.remove()).toBe(true);
    expect(existsSync(join(directory, 'secret'))).toBe(false);
    expect(() => profile.account({})).toThrow('not logged in');
  },
);

test.each(PLATFORMS)('on %s a key ring that does not keep the key is noticed', (platform) => {
  // Some programs end with 0 although the user refused.
  const { directory, profile } = machine(platform, 'cat > /dev/null; exit 0');
  expect(() => profile.save({ url: URL, apiKey: KEY }, true)).toThrow(
    /did not take the key: is .+ there.*Without --keyring, the key is stored in a file/,
  );
  expect(existsSync(join(directory, 'config', 'login.json'))).toBe(false);
});

test('without the program it says so, and the file is there for the key', () => {
  const directory = mkdtempSync(join(tmpdir(), 'heliograph-keyring-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const env = { PATH: directory, HELIOGRAPH_CONFIG_DIR: directory };
  const profile = openProfile(env, openKeyring(env, 'darwin'));
  expect(() => profile.save({ url: URL, apiKey: KEY }, true)).toThrow('is security there');
  profile.save({ url: URL, apiKey: KEY }, false);
  expect(profile.account({}).apiKey).toBe(KEY);
});
