import { randomBytes } from 'node:crypto';
import { statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { text } from 'node:stream/consumers';
import { connect } from 'node:tls';
import { openAccessToken } from '../../features/accounts/access-tokens.ts';
import { listWabas } from '../../features/accounts/accounts.ts';
import { makeMailSender } from '../../features/mail/smtp.ts';
import type { Config } from '../../platform/config/config.ts';
import type { SealedDatabase } from '../../platform/crypto/sealed-database.ts';
import { openAccountClient } from '../../platform/graph/graph-client.ts';
import { GraphError } from '../../platform/graph/graph-error.ts';
import { certificateEndMs, certificateFiles } from '../../platform/metrics/process-metrics.ts';
import { type ObjectStore, openObjectStore } from '../../platform/object-store/object-store.ts';
import { ObjectMissing } from '../../platform/object-store/store-errors.ts';
import { listProxyFaults } from '../../platform/postgres/worker-processes.ts';
import { lookAtProxy } from '../../platform/sender/proxy-tunnel.ts';
import {
  openTemporalConnection,
  type TemporalConnection,
} from '../../platform/temporal/client-connection.ts';
import { SEARCH_ATTRIBUTE_NAMES, taskQueues } from '../../platform/temporal/workflow-options.ts';
import { lookAtFields } from './app-fields.ts';
import { durationOf, type Finding, fail, ok, sizeOf, unlessFine, warn } from './findings.ts';
import { EXPIRES_SOON_DAYS, MOST_ASKED_WABAS } from './limits.ts';
import { look, question, read } from './question.ts';
import { lookAtSignupApp } from './signup-app.ts';

type OfConfig = { config: Config };

type OfTemporal = { temporal: TemporalConnection; config: Pick<Config, 'temporal'> };

const PROXY =
  'start the proxy of HELIOGRAPH_WEBHOOK_PROXY, or correct the setting; deliveries wait meanwhile';
const PROXY_WITHIN_MS = 5_000;
const RESPONDS_WITHIN_MS = 2_000;

export const SERVER_QUESTIONS = {
  temporal: question({
    question: 'Does Temporal respond?',
    // The time to load its client, once, does not count.
    ask: ({ temporal, config }: OfTemporal) =>
      temporal.use(RESPONDS_WITHIN_MS, ({ workflowService }) =>
        workflowService.describeNamespace({ namespace: config.temporal.namespace }),
      ),
  }),
  temporalParts: question({
    line: 'temporal',
    question: 'Has Temporal the namespace, the search attributes and a poller of each task queue?',
    ask: lookAtTemporal,
    away: 'start Temporal, or correct HELIOGRAPH_TEMPORAL_ADDRESS and its TLS settings; deliveries go on meanwhile',
  }),
  objectStore: question({
    question: 'Does the object store respond, and is its bucket there?',
    asker: 'anyone',
    ask: askObjectStore,
  }),
  files: question({
    line: 'object store',
    question: 'Can a file be stored, read and removed?',
    ask: lookAtObjectStore,
    away: 'start the object store, or correct HELIOGRAPH_OBJECT_STORE_*; media waits meanwhile',
  }),
  upstream: question({
    line: 'upstream',
    question: 'Does upstream accept the access token of each WABA?',
    ask: lookAtUpstream,
    away: 'correct HELIOGRAPH_UPSTREAM_GRAPH_URL, or let this machine reach it',
  }),
  fields: question({
    line: 'webhook fields',
    question: 'Do the apps of the WABAs subscribe to the fields that are needed?',
    ask: lookAtFields,
    away: 'correct HELIOGRAPH_UPSTREAM_GRAPH_URL, or let this machine reach it',
  }),
  signupApp: look(
    'set-up links',
    'Is the app in whose dialog customers connect numbers the one of its secret?',
    lookAtSignupApp,
    'correct HELIOGRAPH_UPSTREAM_GRAPH_URL, or let this machine reach it',
  ),
  addressCertificate: question({
    line: 'public address',
    question: 'Until when is the certificate of the public address valid?',
    ask: lookAtAddressCertificate,
  }),
  publicAddress: question({
    line: 'public address',
    question: 'Does the service respond at its public address?',
    ask: askPublicAddress,
    limit: { of: ({ status }) => (status >= 200 && status < 300 ? 0 : 1), degraded: 0, down: 0 },
    advice: 'look at its answer and at the log of the API',
    away: 'correct HELIOGRAPH_PUBLIC_URL, DNS or the proxy (with Compose, its certificate: PROXY_TLS in .env); upstream and tenants come this way',
  }),
  proxy: question({
    line: 'egress proxy',
    question: 'Does the egress proxy carry webhooks of this process?',
    ask: async ({ config: { webhooks } }: { config: Pick<Config, 'webhooks'> }) =>
      webhooks.proxy === null ? null : await lookAtProxy(webhooks.proxy, PROXY_WITHIN_MS),
    limit: { of: (look) => (look === null || look.trouble === null ? 0 : 1), degraded: 0, down: 0 },
    advice: PROXY,
    away: PROXY,
  }),
  workerProxy: read(listProxyFaults, {
    line: 'workers',
    question: 'Does the egress proxy carry webhooks of every worker?',
    limit: { of: ({ length }) => length, degraded: 0, down: 0 },
    advice: PROXY,
  }),
  mail: look('mail', 'Does the mail server take the login?', lookAtMail, 'correct HELIOGRAPH_SMTP_*'),
  traces: question({
    line: 'traces',
    question: 'Does the receiver of traces take them?',
    ask: lookAtTraces,
    away: 'start the receiver of traces, or correct HELIOGRAPH_TRACES_*; traces are dropped meanwhile',
  }),
  certificates: question({
    line: 'certificates',
    question: 'Until when are the certificates of the settings valid?',
    ask: lookAtCertificates,
    away: 'correct the settings that name certificate files',
  }),
  disk: look('disk', 'Has the disk of this machine room?', lookAtDisk, 'look with df'),
};

/** Enough to ask a few things, less than a check may take. */
const TEMPORAL_WITHIN_MS = 10_000;
const ACTIVITIES = 2;

async function lookAtTemporal({ config }: OfConfig): Promise<Finding[]> {
  const { namespace, taskQueuePrefix } = config.temporal;
  const temporal = openTemporalConnection(config);
  try {
    return await temporal.use(TEMPORAL_WITHIN_MS, async ({ workflowService, workflow }) => {
      await workflowService.describeNamespace({ namespace });
      const missing: string[] = [];
      for (const name of SEARCH_ATTRIBUTE_NAMES)
        await workflow.count(`${name} = 'x'`).catch(() => missing.push(name));
      const { session: _, ...queues } = taskQueues(taskQueuePrefix);
      const unpolled: string[] = [];
      for (const queue of Object.values(queues)) {
        const task = { namespace, taskQueue: { name: queue }, taskQueueType: ACTIVITIES };
        const { pollers } = await workflowService.describeTaskQueue(task);
        if ((pollers?.length ?? 0) === 0) unpolled.push(queue);
      }
      return unlessFine(
        ok(`the namespace ${namespace} is there, and all task queues are polled`),
        missing.length > 0 &&
          fail(
            `the namespace ${namespace} lacks the search attributes ${missing.join(', ')}`,
            'run "heliograph-server migrate", or have an administrator create them as keywords',
          ),
        unpolled.length > 0 &&
          fail(
            `nothing polls ${unpolled.join(', ')}`,
            'start a worker, or look at /readyz of those that run',
          ),
      );
    });
  } finally {
    await temporal.close();
  }
}

async function lookAtObjectStore({ config: { objectStore: settings } }: OfConfig): Promise<Finding[]> {
  const store = openObjectStore(settings);
  const [key, content] = [`doctor-${randomBytes(8).toString('hex')}`, randomBytes(32).toString('hex')];
  const source = async function* () {
    yield Buffer.from(content);
  };
  try {
    await store.ensureBucket();
    await store.put(key, source(), { contentType: 'text/plain' });
    const read = await text(await store.getRange(key));
    const kept = await store.remove(key);
    if (read !== content)
      return [fail('a file came back changed', 'look at the object store: media is damaged')];
    const stored = ok(`a file was stored in ${settings.bucket}, read and removed`);
    return unlessFine(stored, ...versionFindings(await store.versioning(), kept));
  } finally {
    store.close();
  }
}

const PROBE_KEY = 'readiness-probe';

/** Resolves when the object store is up and its bucket exists; the probed object never does. */
async function askObjectStore({ objectStore }: { objectStore: ObjectStore }): Promise<void> {
  await objectStore.ensureBucket();
  try {
    await objectStore.stat(PROBE_KEY);
  } catch (error) {
    if (!(error instanceof ObjectMissing)) throw error;
  }
}

/** What would stay of an erased file. */
function versionFindings(
  { state, noncurrentExpire }: Awaited<ReturnType<ObjectStore['versioning']>>,
  kept: number,
): (Finding | false)[] {
  const rules =
    noncurrentExpire === null
      ? 'its lifecycle rules cannot be read'
      : 'no lifecycle rule removes noncurrent ones';
  return [
    kept > 0 &&
      warn(
        'it does not let versions of files be listed or removed: they outlive an erasure, whose report says so',
        'give the role the rights of docs/operators/connections.md, object store',
      ),
    state === 'on' &&
      noncurrentExpire !== true &&
      warn(
        `the bucket keeps versions, and ${rules}`,
        'add a rule with NoncurrentVersionExpiration: docs/operators/erasure.md',
      ),
  ];
}

async function lookAtUpstream({ config, ...tools }: OfConfig & SealedDatabase): Promise<Finding[]> {
  const wabas = (await listWabas(tools.database)).slice(0, MOST_ASKED_WABAS);
  const client = openAccountClient(config);
  try {
    const found = await Promise.all(
      wabas.map(async ({ wabaId }): Promise<Finding | false> => {
        try {
          const token = await openAccessToken(tools, wabaId);
          await client.listPhoneNumbers(wabaId, token);
          return false;
        } catch (error) {
          const isRefused = error instanceof GraphError && error.httpStatus !== null && !error.transient;
          const reason = error instanceof Error ? error.message : String(error);
          const todo = `set a token: admin waba set-token --waba ${wabaId}`;
          return isRefused || !(error instanceof GraphError)
            ? fail(`WABA ${wabaId}: ${reason}`, todo)
            : warn(`WABA ${wabaId}: ${reason}`, 'try again; if it stays, look at the network to upstream');
        }
      }),
    );
    const fine =
      wabas.length === 0 ? 'there is no WABA yet' : `the access tokens of ${wabas.length} WABAs are taken`;
    return unlessFine(ok(fine), ...found);
  } finally {
    await client.close();
  }
}

const PUBLIC_WITHIN_MS = 5_000;

/** The status of its /readyz. */
async function askPublicAddress({ publicUrl }: { publicUrl: string }) {
  const signal = AbortSignal.timeout(PUBLIC_WITHIN_MS);
  const { status } = await fetch(`${publicUrl}/readyz`, { signal });
  return { publicUrl, status };
}

async function lookAtAddressCertificate({ publicUrl }: { publicUrl: string }): Promise<Finding[]> {
  const url = new URL(publicUrl);
  if (url.protocol !== 'https:') return [];
  const endMs = await shownCertificateEndMs(url);
  if (endMs === null) return [warn(`${url.host} shows no certificate`, 'look at the proxy')];
  return [ending(`of ${url.host}`, endMs)];
}

/** Whatever its authority, which the request that follows judges. */
async function shownCertificateEndMs({ hostname, port }: URL): Promise<number | null> {
  const host = hostname.replace(/^\[|\]$/g, '');
  const isName = /[a-z]/i.test(host) && !host.includes(':');
  return await new Promise((resolve, reject) => {
    const socket = connect({
      host,
      port: Number(port || 443),
      rejectUnauthorized: false,
      timeout: PUBLIC_WITHIN_MS,
      ...(isName && { servername: host }),
    });
    const end = (endMs: number | null) => {
      socket.destroy();
      resolve(endMs);
    };
    socket.once('secureConnect', () => {
      const { valid_to: validTo } = socket.getPeerCertificate();
      end(validTo === undefined ? null : Date.parse(validTo));
    });
    socket.once('timeout', () => end(null)).once('error', reject);
  });
}

const SOON_MS = EXPIRES_SOON_DAYS * 86_400_000;

function ending(which: string, endMs: number): Finding {
  const leftMs = endMs - Date.now();
  const todo = 'renew it';
  if (leftMs <= 0) return fail(`the certificate ${which} has ended`, todo);
  const text = `the certificate ${which} ends in ${durationOf(leftMs)}`;
  return leftMs < SOON_MS ? warn(text, todo) : ok(text);
}

async function lookAtMail({ config: { mail } }: OfConfig): Promise<Finding> {
  if (mail.smtpUrl === '') return ok('HELIOGRAPH_SMTP_URL is not set: no e-mail is sent');
  const reason = await makeMailSender(mail).verify();
  if (reason === null) return ok('the mail server takes the login');
  return fail(
    `the mail server: ${reason}`,
    'correct HELIOGRAPH_SMTP_*, then try "admin mail test <address>"; e-mails wait for a day',
  );
}

/** With a request that has no span. */
async function lookAtTraces({ config: { traces } }: OfConfig): Promise<Finding> {
  const { url, headers } = traces;
  if (url === '') return ok('they are off');
  const response = await fetch(`${url}/v1/traces`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: '{"resourceSpans":[]}',
    signal: AbortSignal.timeout(PUBLIC_WITHIN_MS),
  });
  if (response.ok) return ok(`${new URL(url).host} takes them`);
  return warn(
    `${new URL(url).host} returns ${response.status}`,
    'correct HELIOGRAPH_TRACES_URL and HELIOGRAPH_TRACES_HEADERS; traces are dropped meanwhile',
  );
}

async function lookAtCertificates({ config }: OfConfig): Promise<Finding[]> {
  const files = [...certificateFiles(config)];
  return await Promise.all(
    files.map(async ([name, path]) => {
      const endMs = await certificateEndMs(path);
      if (endMs === null) return fail(`the certificate for ${name} cannot be read`, `look at ${path}`);
      return ending(`for ${name}`, endMs);
    }),
  );
}

/** Of the disk that this command runs on, which may not be that of the servers. */
const LEAST_FREE_SHARE = 0.1;

async function lookAtDisk(): Promise<Finding> {
  const { bavail, blocks, bsize } = await statfs(tmpdir());
  const free = `${sizeOf(bavail * bsize)} of this machine are free`;
  if (bavail / blocks < LEAST_FREE_SHARE)
    return warn(free, 'make room; look at the disks of PostgreSQL and the object store too');
  return ok(free);
}
