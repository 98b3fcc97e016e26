import { chmodSync, copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { generate } from 'selfsigned';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ensureCertificate } from '../../../../dev/embedded/certificate.ts';
import { listenToDatabase } from '../../../../src/platform/postgres/connection.ts';
import { openDatabase } from '../../../../src/platform/postgres/database.ts';
import { migrate } from '../../../../src/platform/postgres/migrate.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { type OwnPostgres, startOwnPostgres, startStandby } from '../../../support/own-postgres.ts';
import { silentLogger } from '../../../support/silent-logger.ts';
import { eventually } from '../../../support/webhook-receiver.ts';

function opened(url: string) {
  const database = openDatabase({ url, poolMax: 4, applicationName: 'several' });
  onTestFinished(() => database.destroy());
  return database;
}

/** One URL for both, the first named first. */
function urlOf(first: OwnPostgres, second: OwnPostgres): string {
  const { username, password } = new URL(first.url);
  const hosts = [first, second].map(({ port }) => `127.0.0.1:${port}`).join(',');
  return `postgresql://${username}:${password}@${hosts}/heliograph?target_session_attrs=read-write`;
}

/** Sets the server to refuse writes, or no more. */
async function setReadOnly({ url }: OwnPostgres, how: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query('set default_transaction_read_only = off');
  await client.query(`alter system ${how}`);
  await client.query('select pg_reload_conf()');
  await client.end();
}

describe('several hosts', () => {
  test('are one database: whatever comes first in the URL, work goes where writes are taken, after a fail-over too', async () => {
    const primary = await startOwnPostgres();
    const standby = await startStandby(primary);
    const database = opened(urlOf(standby, primary));
    await migrate(database);
    await database.raw('create table kept (n integer)');
    await execute(database, 'insert into kept values (1)');
    expect(await query(database, 'show transaction_read_only')).toEqual([{ transaction_read_only: 'off' }]);
    let heard = 0;
    const listener = listenToDatabase({
      url: urlOf(standby, primary),
      applicationName: 'listens',
      logger: silentLogger,
      handlers: {
        heliograph_inbox: (payload) => {
          if (payload === 'after') heard += 1;
        },
      },
    });
    onTestFinished(() => listener.close());
    listener.open();
    const replica = opened(standby.url);
    await eventually('the standby has it', async () => {
      const [there] = await query<{ name: string | null }>(
        replica,
        "select to_regclass('kept')::text as name",
      );
      return there?.name != null && (await query(replica, 'select n from kept')).length === 1;
    });

    await primary.stop();
    // The connections that were open may say first that they were cut.
    await eventually('there is no server for writes', () =>
      execute(database, 'insert into kept values (2)').then(
        () => false,
        (error: { code?: string }) => error.code === '57P03',
      ),
    );
    await replica.raw('select pg_promote()');
    await eventually('writes go to the new one', () =>
      execute(database, 'insert into kept values (3)').then(
        () => true,
        () => false,
      ),
    );
    await eventually('the listener hears there', async () => {
      database.notify('heliograph_inbox', 'after');
      return heard > 0;
    });
    expect(await query(replica, 'select n from kept order by n')).toEqual([{ n: 1 }, { n: 3 }]);
  });

  test('a host that swallows everything holds up nobody, and a server that became read-only is left', async () => {
    const primary = await startOwnPostgres();
    const url = new URL(primary.url);
    // No answer ever comes from this address.
    const database = opened(primary.url.replace(`${url.host}/`, `192.0.2.1:5432,${url.host}/`));
    const usualMs = await tookMs(() => query(opened(primary.url), 'select 1'));
    // A look at the silent host takes 3 s.
    expect(await tookMs(() => database.raw('create table kept (n integer)'))).toBeLessThan(usualMs + 2_500);
    await setReadOnly(primary, 'set default_transaction_read_only = on');
    const insert = () => database.transaction((trx) => execute(trx, 'insert into kept values (1)'));
    await eventually('refused', () =>
      insert().then(
        () => false,
        ({ code }) => code === '57P03',
      ),
    );
    await setReadOnly(primary, 'reset default_transaction_read_only');
    await eventually('taken again', () =>
      insert().then(
        () => true,
        () => false,
      ),
    );
  });
});

async function tookMs(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await work();
  return performance.now() - startMs;
}

/** A server with TLS whose certificate is of localhost, and the files of its authority and of a client. */
async function tlsServer() {
  const directory = mkdtempSync(join(tmpdir(), 'heliograph-pg-tls-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const { certPath, keyPath, caPath } = await ensureCertificate(directory);
  const client = await generate([{ name: 'commonName', value: 'heliograph' }], {
    keyType: 'ec',
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'extKeyUsage', clientAuth: true },
    ],
  });
  const server = await startOwnPostgres();
  await server.stop();
  const data = join(server.directory, 'data');
  for (const [from, name] of [
    [certPath, 'server.crt'],
    [keyPath, 'server.key'],
  ] as const) {
    copyFileSync(from, join(data, name));
    chmodSync(join(data, name), 0o600);
  }
  const files = { ca: caPath, cert: join(directory, 'client.crt'), key: join(directory, 'client.key') };
  writeFileSync(files.cert, client.cert);
  writeFileSync(files.key, client.private);
  writeFileSync(join(data, 'clients.crt'), client.cert);
  const start = (rules: readonly string[]) => {
    writeFileSync(
      join(data, 'pg_hba.conf'),
      `${[...rules, 'host postgres all 127.0.0.0/8 scram-sha-256'].join('\n')}\n`,
    );
    return server.start({
      settings: ['ssl=on', 'ssl_ca_file=clients.crt', 'listen_addresses=127.0.0.1,127.0.0.2'],
    });
  };
  const url = (parameters: Record<string, string>, host = '127.0.0.1') =>
    `${server.url.replace('127.0.0.1', host)}?${new URLSearchParams(parameters)}`;
  return { server, files, start, url };
}

const usesTls = 'select ssl from pg_stat_ssl where pid = pg_backend_pid()';

test('TLS modes check what those of PostgreSQL check', async () => {
  const { files, start, url } = await tlsServer();
  await start(['hostssl heliograph all 127.0.0.0/8 scram-sha-256']);
  const ask = (parameters: Record<string, string>, host?: string) =>
    query(opened(url(parameters, host)), usesTls);
  const yes = [{ ssl: true }];
  await expect(ask({ sslmode: 'disable' })).rejects.toThrow(/no pg_hba.conf entry/);
  expect(await ask({ sslmode: 'require' })).toEqual(yes);
  await expect(ask({ sslmode: 'verify-ca' })).rejects.toThrow(/self.signed|unable to/);
  const wrong = { sslrootcert: files.cert };
  await expect(ask({ sslmode: 'require', ...wrong })).rejects.toThrow(/unable to|self.signed/);
  await expect(ask({ sslmode: 'verify-ca', ...wrong })).rejects.toThrow(/unable to|self.signed/);
  const right = { sslrootcert: files.ca };
  // The certificate is of localhost and 127.0.0.1, and not of this other address of the same machine.
  expect(await ask({ sslmode: 'verify-ca', ...right }, '127.0.0.2')).toEqual(yes);
  await expect(ask({ sslmode: 'verify-full', ...right }, '127.0.0.2')).rejects.toThrow(/not in the cert/);
  expect(await ask({ sslmode: 'verify-full', ...right })).toEqual(yes);
});

test('a client certificate is shown where the server asks for one', async () => {
  const { files, start, url } = await tlsServer();
  await start(['hostssl heliograph all 127.0.0.0/8 scram-sha-256 clientcert=verify-ca']);
  const known = { sslmode: 'verify-full', sslrootcert: files.ca };
  await expect(query(opened(url(known)), usesTls)).rejects.toThrow(/client certificate/);
  const shown = { ...known, sslcert: files.cert, sslkey: files.key };
  expect(await query(opened(url(shown)), usesTls)).toEqual([{ ssl: true }]);
});
