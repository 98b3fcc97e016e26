import { randomBytes } from 'node:crypto';
import { statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { text } from 'node:stream/consumers';
import { connect } from 'node:tls';
import { listWabas, openAccessToken } from '../../features/accounts/accounts.ts';
import { makeMailSender } from '../../features/mail/smtp.ts';
import type { Config } from '../../platform/config/config.ts';
import type { SealedDatabase } from '../../platform/crypto/sealed-database.ts';
import { openAccountClient } from '../../platform/graph/graph-client.ts';
import { GraphError } from '../../platform/graph/graph-error.ts';
import { certificateEndMs, certificateFiles } from '../../platform/metrics/process-metrics.ts';
import { type ObjectStore, openObjectStore } from '../../platform/object-store/object-store.ts';
import { lookAtProxy } from '../../platform/sender/proxy-tunnel.ts';
import { openTemporalConnection } from '../../platform/temporal/client-connection.ts';
import { SEARCH_ATTRIBUTE_NAMES, taskQueues } from '../../platform/temporal/workflow-options.ts';
import { type Check, durationOf, type Finding, fail, ok, unlessFine, warn } from './checks.ts';
import { sizeOf } from './database-checks.ts';

export function serverChecks(config: Config, tools: SealedDatabase): Check[] {
  return [
    {
      name: 'temporal',
      todo: 'start Temporal, or correct HELIOGRAPH_TEMPORAL_ADDRESS and its TLS settings; deliveries go on meanwhile',
      run: () => checkTemporal(config),
    },
    {
      name: 'object store',
      todo: 'start the object store, or correct HELIOGRAPH_OBJECT_STORE_*; media waits meanwhile',
      run: () => checkObjectStore(config),
    },
    {
      name: 'upstream',
      todo: 'correct HELIOGRAPH_UPSTREAM_GRAPH_URL, or let this machine reach it',
      run: () => checkUpstream(config, tools),
    },
    {
      name: 'public address',
      todo: 'correct HELIOGRAPH_PUBLIC_URL, DNS or the proxy (with Compose, its certificate: PROXY_TLS in .env); upstream and tenants come this way',
      run: () => checkPublicAddress(config),
    },
    {
      name: 'egress proxy',
      todo: 'start the proxy of HELIOGRAPH_WEBHOOK_PROXY, or correct the setting; deliveries wait meanwhile',
      run: () => checkProxy(config),
    },
    { name: 'mail', todo: 'correct HELIOGRAPH_SMTP_*', run: () => checkMail(config) },
    {
      name: 'traces',
      todo: 'start the receiver of traces, or correct HELIOGRAPH_TRACES_*; traces are dropped meanwhile',
      run: () => checkTraces(config),
    },
    {
      name: 'certificates',
      todo: 'correct the settings that name certificate files',
      run: () => checkCertificates(config),
    },
    { name: 'disk', todo: 'look with df', run: checkDisk },
  ];
}

/** Enough to ask a few things, less than a check may take. */
const TEMPORAL_WITHIN_MS = 10_000;
const ACTIVITIES = 2;

async function checkTemporal(config: Config): Promise<Finding[]> {
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

async function checkObjectStore({ objectStore: settings }: Config): Promise<Finding[]> {
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

/** Each is a request to upstream. */
const MOST_WABAS = 25;

async function checkUpstream(config: Config, tools: SealedDatabase): Promise<Finding[]> {
  const wabas = (await listWabas(tools.database)).slice(0, MOST_WABAS);
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

const PUBLIC_WITHIN_MS = 8_000;

async function checkPublicAddress({ api }: Config): Promise<Finding[]> {
  const url = new URL(api.publicUrl);
  const found: Finding[] = [];
  if (url.protocol === 'https:') {
    const endMs = await shownCertificateEndMs(url);
    found.push(
      endMs === null
        ? warn(`${url.host} shows no certificate`, 'look at the proxy')
        : ending(`of ${url.host}`, endMs),
    );
  }
  const response = await fetch(`${api.publicUrl}/readyz`, { signal: AbortSignal.timeout(PUBLIC_WITHIN_MS) });
  found.push(
    response.ok
      ? ok(`${api.publicUrl} is ready`)
      : fail(
          `${api.publicUrl}/readyz returns ${response.status}`,
          'look at its answer and at the log of the API',
        ),
  );
  return found;
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

/** Time to get another one. */
const SOON_MS = 14 * 86_400_000;

function ending(which: string, endMs: number): Finding {
  const leftMs = endMs - Date.now();
  const todo = 'renew it';
  if (leftMs <= 0) return fail(`the certificate ${which} has ended`, todo);
  const text = `the certificate ${which} ends in ${durationOf(leftMs)}`;
  return leftMs < SOON_MS ? warn(text, todo) : ok(text);
}

const PROXY_WITHIN_MS = 5_000;

/** With a request that the proxy should refuse. */
async function checkProxy({ webhooks: { proxy } }: Config): Promise<Finding> {
  if (proxy === null) return ok('HELIOGRAPH_WEBHOOK_PROXY is not set: webhooks are sent directly');
  const { trouble, isOpenInside } = await lookAtProxy(proxy, PROXY_WITHIN_MS);
  if (trouble !== null)
    return fail(trouble, 'start the proxy, or correct HELIOGRAPH_WEBHOOK_PROXY; deliveries wait meanwhile');
  if (isOpenInside)
    return warn(
      'the egress proxy makes connections to its own loopback address',
      'have it refuse internal addresses: docs/operators/connections.md, egress proxy',
    );
  return ok('the egress proxy accepts our credentials and refuses its own loopback address');
}

async function checkMail({ mail }: Config): Promise<Finding> {
  if (mail.smtpUrl === '') return ok('HELIOGRAPH_SMTP_URL is not set: no e-mail is sent');
  const reason = await makeMailSender(mail).verify();
  if (reason === null) return ok('the mail server takes the login');
  return fail(
    `the mail server: ${reason}`,
    'correct HELIOGRAPH_SMTP_*, then try "admin mail test <address>"; e-mails wait for a day',
  );
}

/** With a request that has no span. */
async function checkTraces({ traces: { url, headers } }: Config): Promise<Finding> {
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

async function checkCertificates(config: Config): Promise<Finding[]> {
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

async function checkDisk(): Promise<Finding> {
  const { bavail, blocks, bsize } = await statfs(tmpdir());
  const free = `${sizeOf(bavail * bsize)} of this machine are free`;
  if (bavail / blocks < LEAST_FREE_SHARE)
    return warn(free, 'make room; look at the disks of PostgreSQL and the object store too');
  return ok(free);
}
