import { buildApp } from '../src/api/app.ts';
/**
 * How long the pages of the portal take with a long log behind them, and how large they are.
 * Run: node bench/portal-pages.ts [--deliveries 1000000] [--rounds 40]
 */

import { parseArgs } from 'node:util';
import { pino } from 'pino';
import { startTestInfrastructure } from '../dev/embedded/test-infrastructure.ts';
import { loadConfig } from '../src/platform/config/config.ts';
import { openObjectStore } from '../src/platform/object-store/object-store.ts';
import { openDatabase } from '../src/platform/postgres/database.ts';
import { migrate } from '../src/platform/postgres/migrate.ts';
import { fillPortal, OPERATOR, WABA } from './portal/fill-portal.ts';
import { signIn, timePages } from './portal/page-times.ts';
import { ageDatabase } from './stack/aged-database.ts';

const TARGET_MS = 50;
const TARGET_BYTES = 100 * 1024;

const { values } = parseArgs({
  options: {
    deliveries: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '40' },
  },
});
const log = (line: string) => process.stderr.write(`${line}\n`);

const infrastructure = await startTestInfrastructure(() => {});
const { postgresUrl, minioUrl, minioCredentials, temporalAddress } = infrastructure;
const database = openDatabase({ url: postgresUrl, poolMax: 10, applicationName: 'bench' });
const config = loadConfig({
  HELIOGRAPH_MODE: 'development',
  HELIOGRAPH_DATABASE_URL: postgresUrl,
  HELIOGRAPH_TEMPORAL_ADDRESS: temporalAddress,
  HELIOGRAPH_OBJECT_STORE_URL: minioUrl,
  HELIOGRAPH_OBJECT_STORE_ACCESS_KEY: minioCredentials.accessKey,
  HELIOGRAPH_OBJECT_STORE_SECRET_KEY: minioCredentials.secretKey,
  HELIOGRAPH_PUBLIC_URL: 'https://heliograph.example',
  HELIOGRAPH_UPSTREAM_APP_SECRETS: 'bench',
  HELIOGRAPH_UPSTREAM_VERIFY_TOKEN: 'bench',
  HELIOGRAPH_ENCRYPTION_KEYS: `bench:${Buffer.alloc(32, 7).toString('base64')}`,
});
const objectStore = openObjectStore(config.objectStore);
const app = buildApp({ config, database, objectStore, logger: pino({ level: 'silent' }) });
try {
  await migrate(database);
  await ageDatabase(database);
  const { endpointId, conversationId } = await fillPortal(database, Number(values.deliveries), log);
  const open = await signIn(app, OPERATOR);
  const base = `/portal/w/${WABA}`;
  const list = await open(`${base}/deliveries`);
  const deliveryId = /deliveries\/(dlv_[0-9a-f]{32})/.exec(list)?.[1];
  const next = /href="([^"]*cursor=[^"]*)" rel="next"/.exec(list)?.[1]?.replaceAll('&amp;', '&') ?? base;
  const pages = await timePages(
    open,
    [
      ...['', '/endpoints', `/endpoints/${endpointId}`, `/endpoints/${endpointId}/edit`].map(
        (path) => base + path,
      ),
      ...['/deliveries', `/deliveries/${deliveryId}`].map((path) => base + path),
      next,
      ...['state=failed', 'state=pending', 'answer=5xx', 'eventType=order', 'id=wamid.7'].map(
        (query) => `${base}/deliveries?${query}`,
      ),
      `${base}/deliveries?endpointId=${endpointId}`,
      ...['/replays', '/replays/new', '/event-types', '/event-types/order', '/keys', '/audit'].map(
        (path) => base + path,
      ),
      ...['/conversations', `/conversations/${conversationId}`].map((path) => base + path),
      ...[
        '/health',
        '/deliveries',
        '/deliveries?state=failed',
        '/tenants',
        '/users',
        '/audit',
        '/settings',
      ].map((path) => `/portal/operator${path}`),
      `/portal/operator/wabas/${WABA}`,
    ],
    Number(values.rounds),
  );
  process.stdout.write('| page | p50 ms | p95 ms | KB |\n|---|---|---|---|\n');
  for (const { path, p50, p95, bytes } of pages) {
    const name = path.replace(/cursor=[^&]*/, 'cursor=…').replace(deliveryId ?? '-', 'dlv_…');
    const missed = p95 > TARGET_MS || bytes > TARGET_BYTES ? ' (misses its target)' : '';
    process.stdout.write(
      `| \`${name}\` | ${p50.toFixed(1)} | ${p95.toFixed(1)}${missed} | ${Math.ceil(bytes / 1024)} |\n`,
    );
  }
} finally {
  await app.close();
  objectStore.close();
  await database.destroy();
  await infrastructure.stop();
}
