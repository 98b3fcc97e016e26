import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openDataDirectory } from '../../../../dev/embedded/data-directory.ts';
import { keepTenants, keptSecret, readKeptTenants } from '../../../../dev/embedded/kept-files.ts';
import { temporaryDirectory } from './temporary-directory.ts';

const open = (dataDir: string, fresh = false) => openDataDirectory(dataDir, { fresh, log: () => undefined });

describe('data directory', () => {
  test('is made for this user only, and keeps its content', async () => {
    const dataDir = join(temporaryDirectory(), 'deep', 'data');
    (await open(dataDir)).release();
    expect(statSync(dataDir).mode & 0o777).toBe(0o700);
    writeFileSync(join(dataDir, 'state'), 'kept');
    (await open(dataDir)).release();
    expect(readFileSync(join(dataDir, 'state'), 'utf8')).toBe('kept');
  });

  test('fresh removes everything in it', async () => {
    const dataDir = join(temporaryDirectory(), 'data');
    (await open(dataDir)).release();
    mkdirSync(join(dataDir, 'postgres', 'data'), { recursive: true });
    writeFileSync(join(dataDir, 'postgres', 'data', 'file'), '');
    (await open(dataDir, true)).release();
    expect(readdirSync(dataDir)).toEqual(['heliograph-data']);
  });

  test.each([true, false])(
    'a directory with other content is refused untouched (fresh: %s)',
    async (fresh) => {
      const dataDir = temporaryDirectory();
      writeFileSync(join(dataDir, 'thesis.txt'), 'years of work');
      await expect(open(dataDir, fresh)).rejects.toThrow(/is not a data directory of Heliograph/);
      expect(readdirSync(dataDir)).toEqual(['thesis.txt']);
    },
  );

  test('a disk with little room is refused before anything is written', async () => {
    const dataDir = temporaryDirectory();
    const opened = openDataDirectory(dataDir, { fresh: false, log: () => undefined, freeBytes: 20_000_000 });
    await expect(opened).rejects.toThrow(/has 20 MB left, and 500 MB are needed.*--data-dir/);
    expect(readdirSync(dataDir)).toEqual([]);
  });

  test.each([true, false])('a directory in use is refused (fresh: %s)', async (fresh) => {
    const dataDir = join(temporaryDirectory(), 'data');
    const lock = await open(dataDir);
    writeFileSync(join(dataDir, 'state'), 'kept');
    await expect(open(dataDir, fresh)).rejects.toThrow(/runs already in .*--data-dir/);
    expect(existsSync(join(dataDir, 'state'))).toBe(true);
    lock.release();
    (await open(dataDir)).release();
  });
});

describe('kept secrets and tenants', () => {
  test('a secret is made once, is long enough, and only its owner reads it', () => {
    const path = join(temporaryDirectory(), 'secret');
    const secret = keptSecret(path, 32);
    expect(Buffer.from(secret, 'base64url')).toHaveLength(32);
    expect(keptSecret(path, 32)).toBe(secret);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test('tenants come back as they were kept', () => {
    const dataDir = temporaryDirectory();
    const tenant = {
      userId: 1,
      businessName: 'Demo',
      wabaId: '900000000000101',
      phoneNumberIds: ['800000000000111'],
      apiKey: 'key',
      endpointId: 'endpoint',
      webhookSecret: 'whsec_x',
    };
    expect(readKeptTenants(dataDir)).toEqual([]);
    keepTenants(dataDir, [tenant]);
    expect(readKeptTenants(dataDir)).toEqual([tenant]);
    expect(statSync(join(dataDir, 'demo-tenants.json')).mode & 0o777).toBe(0o600);
  });

  test.each(['', '{}', 'null', '[null,1,{"userId":"x"}]'])(
    'a damaged tenants file %j is no tenants',
    (content) => {
      const dataDir = temporaryDirectory();
      writeFileSync(join(dataDir, 'demo-tenants.json'), content);
      expect(readKeptTenants(dataDir)).toEqual([]);
    },
  );
});
