import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:https';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ensureCertificate, type LocalCertificate } from '../../../../dev/embedded/certificate.ts';
import { temporaryDirectory } from './temporary-directory.ts';

const DAY_MS = 86_400_000;

async function serve({ certPath, keyPath }: LocalCertificate): Promise<number> {
  const server = createServer(
    { cert: readFileSync(certPath), key: readFileSync(keyPath) },
    (_request, response) => response.end('hello'),
  );
  await new Promise<void>((resolve) => server.listen(0, '::', resolve));
  onTestFinished(() => void server.close());
  return (server.address() as { port: number }).port;
}

function get(host: string, port: number, ca?: Buffer): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request({ host, port, ca, agent: false }, (response) => resolve(response.resume().statusCode))
      .once('error', reject)
      .end();
  });
}

describe('local certificate', () => {
  test('a client that trusts the authority accepts it for every local name, and no other client does', async () => {
    const certificate = await ensureCertificate(join(temporaryDirectory(), 'tls'));
    const port = await serve(certificate);
    const ca = readFileSync(certificate.caPath);
    for (const host of ['localhost', '127.0.0.1', '::1']) expect(await get(host, port, ca)).toBe(200);
    await expect(get('127.0.0.1', port)).rejects.toThrow(/certificate/);
  });

  test('it is valid for more than a year and its key is private', async () => {
    const { certPath, keyPath } = await ensureCertificate(join(temporaryDirectory(), 'tls'));
    const { validToDate } = new X509Certificate(readFileSync(certPath));
    expect(validToDate.getTime() - Date.now()).toBeGreaterThan(366 * DAY_MS);
    expect(statSync(keyPath).mode & 0o777).toBe(0o600);
  });

  test('it is kept, and made anew only when it is about to end', async () => {
    const directory = join(temporaryDirectory(), 'tls');
    const { certPath } = await ensureCertificate(directory);
    const first = readFileSync(certPath, 'utf8');
    await ensureCertificate(directory, new Date(Date.now() + 690 * DAY_MS));
    expect(readFileSync(certPath, 'utf8')).toBe(first);
    await ensureCertificate(directory, new Date(Date.now() + 710 * DAY_MS));
    expect(readFileSync(certPath, 'utf8')).not.toBe(first);
  });

  test.each(['caPath', 'certPath'] as const)(
    'a damaged %s is replaced with a whole new set',
    async (which) => {
      const directory = join(temporaryDirectory(), 'tls');
      const paths = await ensureCertificate(directory);
      writeFileSync(paths[which], 'damaged');
      const renewed = await ensureCertificate(directory);
      expect(await get('127.0.0.1', await serve(renewed), readFileSync(renewed.caPath))).toBe(200);
    },
  );
});
