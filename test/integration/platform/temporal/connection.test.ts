import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { generate } from 'selfsigned';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { ensureCertificate, type LocalCertificate } from '../../../../dev/embedded/certificate.ts';
import { insertBodies } from '../../../../src/ingest/intake/store-bodies.ts';
import { loadConfig } from '../../../../src/platform/config/config.ts';
import { openTemporalConnection } from '../../../../src/platform/temporal/client-connection.ts';
import { SEARCH_ATTRIBUTE_NAMES } from '../../../../src/platform/temporal/workflow-options.ts';
import { ACCOUNT, bodyOf, textMessage } from '../../../support/load/upstream-bodies.ts';
import { addEndpoint } from '../../../support/test-accounts.ts';
import { seededDatabase } from '../../../support/test-database.ts';
import { testSettings } from '../../../support/test-settings.ts';
import { eventually, startReceiver } from '../../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../../support/worker-process.ts';
import { startTemporalProxy } from './temporal-proxy.ts';

const API_KEY = 'api-key-of-the-namespace';
const MAIN = new URL('../../../../src/main.ts', import.meta.url).pathname;

let directory: string;
let certificate: LocalCertificate;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'heliograph-temporal-'));
  certificate = await ensureCertificate(directory);
});
afterAll(() => rmSync(directory, { recursive: true }));

/** A tenant whose events are delivered inside workflows, on a database of its own. */
async function installation(temporal: Record<string, string>) {
  const { database, url } = await seededDatabase();
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  await addEndpoint(database, ACCOUNT.wabaId, `${receiver.url}/hook`);
  const settings = testSettings(url, { HELIOGRAPH_DELIVERY_WORKFLOWS: 'always', ...temporal });
  const takeOne = async () => {
    const id = `wamid.${randomBytes(6).toString('hex')}`;
    await insertBodies(database, [bodyOf(ACCOUNT, [textMessage(id, 'x')])]);
    return id;
  };
  const isDelivered = (id: string) => receiver.received.some(({ body }) => body.includes(id));
  return { settings, takeOne, isDelivered };
}

function startWorker(settings: Record<string, string>) {
  const worker = startWorkerProcess(settings);
  onTestFinished(() => worker.stop());
  return worker;
}

/** A message taken in goes out by a workflow, and the API's client reaches Temporal too. */
async function expectWorkflows({ settings, takeOne, isDelivered }: Awaited<ReturnType<typeof installation>>) {
  await startWorker(settings).ready();
  const id = await takeOne();
  await eventually('delivered', () => isDelivered(id));
  const client = openTemporalConnection(loadConfig(settings));
  onTestFinished(() => client.close());
  await client.use(5_000, ({ workflow }) => workflow.count(`HeliographEventId = '${id}'`));
}

const tls = (overrides: Record<string, string> = {}) => ({
  HELIOGRAPH_TEMPORAL_TLS: 'true',
  HELIOGRAPH_TEMPORAL_TLS_CA_FILE: certificate.caPath,
  ...overrides,
});

describe('Temporal over TLS', () => {
  test('is used with an authority of its own and a name that is not that of its address', async () => {
    const { temporalAddress } = inject('infrastructure');
    const { address } = await startTemporalProxy(temporalAddress, { certificate });
    const name = { HELIOGRAPH_TEMPORAL_TLS_SERVER_NAME: 'localhost' };
    await expectWorkflows(await installation(tls({ HELIOGRAPH_TEMPORAL_ADDRESS: address, ...name })));
  });

  test('is not used when its certificate is of nobody whom we trust: the worker waits and delivers on', async () => {
    const { temporalAddress } = inject('infrastructure');
    const { address, passed } = await startTemporalProxy(temporalAddress, { certificate });
    const { settings, takeOne, isDelivered } = await installation({
      HELIOGRAPH_TEMPORAL_TLS: 'true',
      HELIOGRAPH_TEMPORAL_ADDRESS: address,
      HELIOGRAPH_DELIVERY_WORKFLOWS: 'auto',
    });
    const worker = startWorker(settings);
    const id = await takeOne();
    await eventually('delivered without Temporal', () => isDelivered(id));
    await eventually('it is said', () => worker.output().includes('Temporal is away'));
    expect([...passed]).toEqual([]);
  });

  test('is shown our certificate where it asks for one (mTLS)', async () => {
    const client = await generate([{ name: 'commonName', value: 'gateway' }], {
      keyType: 'ec',
      extensions: [
        { name: 'basicConstraints', cA: true, critical: true },
        { name: 'extKeyUsage', clientAuth: true },
      ],
    });
    const files = {
      HELIOGRAPH_TEMPORAL_TLS_CERT_FILE: join(directory, 'client.pem'),
      HELIOGRAPH_TEMPORAL_TLS_KEY_FILE: join(directory, 'client-key.pem'),
    };
    writeFileSync(files.HELIOGRAPH_TEMPORAL_TLS_CERT_FILE, client.cert);
    writeFileSync(files.HELIOGRAPH_TEMPORAL_TLS_KEY_FILE, client.private);
    const guard = { certificate, clientCertificate: client.cert };
    const proxy = await startTemporalProxy(inject('infrastructure').temporalAddress, guard);
    const address = { HELIOGRAPH_TEMPORAL_ADDRESS: proxy.address };
    const without = openTemporalConnection(
      loadConfig(testSettings('postgres://u@127.0.0.1/u', tls(address))),
    );
    onTestFinished(() => without.close());
    await expect(without.use(2_000, ({ workflow }) => workflow.count())).rejects.toThrow();
    expect([...proxy.passed]).toEqual([]);
    await expectWorkflows(await installation(tls({ ...address, ...files })));
  });
});

describe('Temporal Cloud: an API key, and nothing that only administrators may do', () => {
  test('is used without a call of the operator service', async () => {
    const guard = { certificate, apiKey: API_KEY, refusesOperators: true };
    const proxy = await startTemporalProxy(inject('infrastructure').temporalAddress, guard);
    const address = { HELIOGRAPH_TEMPORAL_ADDRESS: proxy.address };
    const wrong = { ...tls(address), HELIOGRAPH_TEMPORAL_API_KEY: 'another-key' };
    const refused = openTemporalConnection(loadConfig(testSettings('postgres://u@127.0.0.1/u', wrong)));
    onTestFinished(() => refused.close());
    await expect(refused.use(2_000, ({ workflow }) => workflow.count())).rejects.toThrow();
    proxy.refused.clear();
    await expectWorkflows(await installation(tls({ ...address, HELIOGRAPH_TEMPORAL_API_KEY: API_KEY })));
    expect([...proxy.refused]).toEqual([]);
  });

  test('says in one sentence which search attributes are missing, and goes on once they are there', async () => {
    const { temporalAddress } = inject('infrastructure');
    const admin = await Connection.connect({ address: temporalAddress });
    onTestFinished(() => admin.close());
    const namespace = `cloud-${randomBytes(4).toString('hex')}`;
    const { config } = await admin.workflowService.describeNamespace({ namespace: 'default' });
    const workflowExecutionRetentionPeriod = config?.workflowExecutionRetentionTtl ?? null;
    await admin.workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod });
    const [kept = '', ...missing] = SEARCH_ATTRIBUTE_NAMES;
    const register = (names: readonly string[]) =>
      admin.operatorService.addSearchAttributes({
        namespace,
        searchAttributes: Object.fromEntries(names.map((name) => [name, 2])),
      });
    await eventually('the namespace is known', () =>
      register([kept]).then(
        () => true,
        () => false,
      ),
    );
    const guard = { certificate, apiKey: API_KEY, refusesOperators: true };
    const proxy = await startTemporalProxy(temporalAddress, guard);
    const { settings, takeOne, isDelivered } = await installation(
      tls({
        HELIOGRAPH_TEMPORAL_ADDRESS: proxy.address,
        HELIOGRAPH_TEMPORAL_NAMESPACE: namespace,
        HELIOGRAPH_TEMPORAL_API_KEY: API_KEY,
      }),
    );
    const sentence =
      `Temporal's namespace ${namespace} lacks the search attributes ${missing.join(', ')} and does not let this ` +
      'process create them: no workflow can start until an administrator has created them, as keywords';
    const isSaidAsError = (output: string) =>
      output
        .split('\n')
        .some((line) => line.includes(`"msg":${JSON.stringify(sentence)}`) && /"level":50/.test(line));
    const worker = startWorker(settings);
    await eventually('the worker says it', () => isSaidAsError(worker.output()));
    expect(isSaidAsError(await printedByMigrate(settings))).toBe(true);
    expect(worker.output().split(sentence)).toHaveLength(2);
    await register(missing);
    await worker.ready();
    const id = await takeOne();
    await eventually('delivered', () => isDelivered(id));
  });
});

/** Migrations succeed whatever Temporal says. */
async function printedByMigrate(settings: Record<string, string>): Promise<string> {
  return await new Promise((resolve, reject) => {
    execFile(process.execPath, [MAIN, 'migrate'], { env: settings }, (error, stdout) =>
      error === null ? resolve(stdout) : reject(error),
    );
  });
}
