import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { COMPOSE, substitute } from './compose-file.ts';
import { prepareFolder } from './prepared-folder.ts';

const { folder: prepared, prepare, fileOf: preparedFile } = prepareFolder();

describe('deploy/prepare.sh', () => {
  test('every secret is a file that deploy/prepare.sh makes, and keeps when it is run again', () => {
    for (const [name, { file }] of Object.entries(COMPOSE.secrets)) {
      const path = name.startsWith('tls-') ? `tls/${name.slice(4)}.pem` : `secrets/${name}`;
      expect(substitute(file)).toBe(`./${path}`);
      expect(statSync(join(prepared, path)).mode & 0o777).toBe(0o644);
    }
    const names = Object.keys(COMPOSE.secrets).filter((name) => !name.startsWith('tls-'));
    expect(readdirSync(join(prepared, 'secrets')).sort()).toEqual(names.sort());
    expect(statSync(join(prepared, 'tls')).mode & 0o777).toBe(0o700);
    expect(statSync(join(prepared, 'secrets')).mode & 0o777).toBe(0o700);
    const before = preparedFile('secrets/encryption-keys');
    prepare();
    expect(preparedFile('secrets/encryption-keys')).toBe(before);
  });

  test('deploy/prepare.sh says what is missing for a certificate that upstream accepts', () => {
    const elsewhere = mkdtempSync(join(tmpdir(), 'compose-'));
    cpSync(join(prepared, 'deploy'), join(elsewhere, 'deploy'), { recursive: true });
    const saidWith = (env: string) => {
      writeFileSync(join(elsewhere, '.env'), env);
      const { PROXY_TLS: _, ...rest } = process.env;
      const said = execFileSync('sh', ['deploy/prepare.sh'], { cwd: elsewhere, encoding: 'utf8', env: rest });
      return said.split('\n').filter((line) => line.includes('PROXY_TLS'));
    };
    const isPrivate = [expect.stringMatching(/^still to do: .*internal: upstream refuses/)];
    for (const env of ['', 'PROXY_TLS=\n', 'PROXY_TLS=internal\n', 'PROXY_TLS="internal"\n'])
      expect(saidWith(env), env).toEqual(isPrivate);
    expect(saidWith('PROXY_TLS=you@example.com\n')).toEqual([]);
    const files = 'PROXY_TLS=/tls/chain.pem /tls/key.pem\n';
    expect(saidWith(files)).toEqual([
      expect.stringContaining('tls/chain.pem, which is empty'),
      expect.stringContaining('tls/key.pem, which is empty'),
    ]);
    writeFileSync(join(elsewhere, 'tls/chain.pem'), 'x');
    expect(saidWith(files)).toEqual([expect.stringContaining('tls/key.pem, which is empty')]);
    writeFileSync(join(elsewhere, 'tls/key.pem'), 'x');
    expect(saidWith(files)).toEqual([]);
    rmSync(elsewhere, { recursive: true });
  });

  test('deploy/prepare.sh makes them where .env says that they are', () => {
    const elsewhere = mkdtempSync(join(tmpdir(), 'compose-'));
    cpSync(join(prepared, 'deploy'), join(elsewhere, 'deploy'), { recursive: true });
    writeFileSync(join(elsewhere, '.env'), 'SECRETS_DIR=./other/secrets\nTLS_DIR=./other/tls\n');
    execFileSync('sh', ['deploy/prepare.sh'], { cwd: elsewhere });
    expect(existsSync(join(elsewhere, 'other/secrets/encryption-keys'))).toBe(true);
    expect(existsSync(join(elsewhere, 'other/tls/chain.pem'))).toBe(true);
    expect(existsSync(join(elsewhere, 'secrets'))).toBe(false);
    rmSync(elsewhere, { recursive: true });
  });
});
