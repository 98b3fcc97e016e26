import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { runAdminProcess, startAdmin } from '../../../support/admin-cli.ts';
import { testDatabase } from '../../../support/test-database.ts';
import { testSettings } from '../../../support/test-settings.ts';

describe('the admin command line', () => {
  test('--help ends with 0, wrong usage with 2', async () => {
    const help = await runAdminProcess({}, ['key', 'create', '--help']);
    expect(help).toMatchObject({ exitCode: 0, stderr: '' });
    expect(help.stdout).toContain('Example:');
    expect(await runAdminProcess({}, [])).toMatchObject({ exitCode: 2, stdout: '' });
    expect(await runAdminProcess({}, ['key', 'create'])).toMatchObject({ exitCode: 2, stdout: '' });
    expect(await runAdminProcess({}, ['key', 'revoke', '1', '2'])).toMatchObject({ exitCode: 2, stdout: '' });
  });

  test('says what to do when the database is away, empty, or refuses the login', async () => {
    const away = await runAdminProcess(testSettings('postgres://u:secret-password@127.0.0.1:9/x'), [
      'tenant',
      'list',
    ]);
    expect(away).toMatchObject({ exitCode: 1, stdout: '' });
    expect(away.stderr).toMatch(/^error: The database at 127\.0\.0\.1:9 does not answer: [^\n]+\n$/);
    expect(away.stderr).not.toContain('secret-password');

    const unmigrated = new URL(inject('infrastructure').postgresUrl);
    const empty = await runAdminProcess(testSettings(unmigrated.href), ['tenant', 'list', '--json']);
    expect(empty.exitCode).toBe(1);
    expect(JSON.parse(empty.stdout)).toMatchObject({ error: { code: 'not_migrated' } });

    const { url } = await testDatabase();
    const login = new URL(url);
    login.pathname = '/no_such_database';
    const refused = await runAdminProcess(testSettings(login.href), ['tenant', 'list']);
    expect(refused.stderr).toContain('check HELIOGRAPH_DATABASE_URL');
  });

  test('no text of others reaches a terminal as a command, in tables, JSON, notes and errors', async () => {
    const { admin, database } = await startAdmin();
    const evil = 'a\u001b[2Jb\u009b2Jc\u009d0;t\u009cd\u007f';
    await execute(database, 'update tenants set business_name = :evil', { evil });
    const runs = [
      await admin(['tenant', 'list']),
      await admin(['tenant', 'list', '--json']),
      await admin(['endpoint', 'list', '--waba', evil, '--json']),
    ];
    for (const { stdout, stderr } of runs)
      expect((stdout + stderr).replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
    expect(JSON.stringify(JSON.parse(runs[1]?.stdout ?? ''))).toContain(JSON.stringify(evil).slice(1, -1));
  });

  test('says which settings are missing', async () => {
    const { stderr, exitCode } = await runAdminProcess(
      { HELIOGRAPH_DATABASE_URL: 'postgres://127.0.0.1:9/x' },
      [...['tenant', 'list']],
    );
    expect(exitCode).toBe(2);
    expect(stderr).toContain('HELIOGRAPH_ENCRYPTION_KEYS is required');
  });

  test('finds the stack that npm start keeps, without any setting', async () => {
    const { databaseUrl } = await startAdmin();
    const dataDir = mkdtempSync(join(tmpdir(), 'heliograph-admin-'));
    onTestFinished(() => rmSync(dataDir, { recursive: true }));
    const description = {
      publicUrl: 'https://127.0.0.1:8443',
      temporalAddress: '127.0.0.1:7233',
      temporalUiUrl: 'http://127.0.0.1:8233',
      postgresUrl: databaseUrl,
      minioUrl: 'http://127.0.0.1:9000',
      minioAccessKey: 'heliograph',
      minioSecretKey: 'secret-key',
      caPath: join(dataDir, 'ca.pem'),
      sandboxUrl: 'http://127.0.0.1:8090',
      upstream: { appSecret: 'test-app-secret', verifyToken: 'verify' },
    };
    writeFileSync(join(dataDir, 'embedded.json'), JSON.stringify(description));
    writeFileSync(join(dataDir, 'encryption-key'), Buffer.alloc(32, 7).toString('base64url'));
    const list = await runAdminProcess({}, ['waba', 'list', '--json', '--data-dir', dataDir]);
    expect(list).toMatchObject({ exitCode: 0, stderr: '' });
    expect(JSON.parse(list.stdout)).toHaveLength(2);
    const url = ['--waba', '900000000000101', '--url', 'http://127.0.0.1:9/hook'];
    const add = await runAdminProcess({}, ['endpoint', 'add', ...url, '--data-dir', dataDir]);
    expect(add.stdout).toMatch(/^id +\d+\nsecret +whsec_/);
    const none = await runAdminProcess({}, ['tenant', 'list', '--data-dir', join(dataDir, 'nothing')]);
    expect(none.exitCode).toBe(1);
    expect(none.stderr).toContain('npm start');
  });
});
