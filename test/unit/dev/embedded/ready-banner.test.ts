import { expect, test } from 'vitest';
import { type BannerData, readyBanner } from '../../../../dev/embedded/start.ts';

const DATA: BannerData = {
  description: {
    apiUrl: 'http://127.0.0.1:8080',
    publicUrl: 'http://127.0.0.1:8080',
    httpsUrl: 'https://127.0.0.1:8443',
    caPath: '.data/tls/ca.pem',
    ingressUrl: 'http://127.0.0.1:8080',
    temporalAddress: '127.0.0.1:7233',
    temporalUiUrl: 'http://127.0.0.1:8233',
    postgresUrl: 'postgres://heliograph:database-password@127.0.0.1:5433/heliograph',
    minioUrl: 'http://127.0.0.1:9000',
    minioAccessKey: 'heliograph',
    minioSecretKey: 'console-password',
    sandboxUrl: 'http://127.0.0.1:8090',
    receiverUrl: 'http://127.0.0.1:8091',
    upstream: { appSecret: 'test-app-secret', verifyToken: 'heliograph-verify' },
    tenants: [
      {
        userId: 1,
        businessName: 'Demo Shop',
        wabaId: '900000000000101',
        phoneNumberIds: ['800000000000111'],
        apiKey: 'demo-key',
        endpointId: 'endpoint',
        webhookSecret: 'whsec_secret',
      },
    ],
    portalUrl: 'http://127.0.0.1:8080/portal',
    portalUsers: [
      { email: 'operator@demo.example', name: 'Operator', role: 'operator', password: 'operator-password' },
      { email: 'admin@demo.example', name: 'Admin', role: 'admin', password: 'admin-password' },
    ],
    pids: {},
  },
  minioConsoleUrl: 'http://127.0.0.1:9001',
  minioCredentials: { accessKey: 'heliograph', secretKey: 'console-password' },
  descriptionFile: '.data/embedded.json',
  logDirectory: '.data/logs',
  startSeconds: 6.04,
  missing: new Set(),
};

test('the banner has all a newcomer needs, each address whole on its line', () => {
  const banner = readyBanner(DATA, false);
  for (const text of [
    'Heliograph is ready after 6.0 s',
    'http://127.0.0.1:8080',
    'https://127.0.0.1:8443',
    'http://127.0.0.1:8080/portal\n',
    'as operator    operator@demo.example password operator-password',
    'as admin       admin@demo.example password admin-password',
    'http://127.0.0.1:8233',
    'http://127.0.0.1:9001 user heliograph, password console-password',
    'demo-key (Demo Shop)',
    'npm run sandbox -- message "hello"',
    "curl -H 'Authorization: Bearer demo-key' http://127.0.0.1:8080/me",
    '.data/embedded.json',
    '.data/logs',
  ]) {
    expect(banner).toContain(text);
  }
  expect(banner).not.toContain('database-password');
  expect(banner).not.toContain('whsec_');
});

test('there are colours only when asked for', () => {
  expect(readyBanner(DATA, false)).not.toContain('\u001b');
  expect(readyBanner(DATA, true)).toContain('\u001b[');
});

test('it says what is still missing, and what waits for it', () => {
  const banner = (...missing: ('Temporal' | 'MinIO')[]) =>
    readyBanner({ ...DATA, missing: new Set(missing) }, false);
  const both = banner('Temporal', 'MinIO');
  expect(both).toContain('Until Temporal and MinIO join, replies, media and e-mails wait; nothing is lost.');
  expect(both).not.toContain('http://127.0.0.1:8233');
  expect(both).not.toContain('http://127.0.0.1:9001');
  expect(banner('MinIO')).toContain('Until MinIO joins, media waits; nothing is lost.');
  expect(banner('MinIO')).toContain('http://127.0.0.1:8233');
});

test('it works without tenants', () => {
  expect(readyBanner({ ...DATA, description: { ...DATA.description, tenants: [] } }, false)).not.toContain(
    'curl',
  );
});
