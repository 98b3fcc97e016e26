import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { startTestInfrastructure } from '../../src/dev/embedded/test-infrastructure.ts';
import { startUpstreamServer } from '../../src/dev/sandbox/upstream-server.ts';
import { NODE_FLAGS } from '../../src/platform/config/process-options.ts';
import { bodyOf, imageMessage, postUpstream, textMessage } from '../../test/support/load/upstream-bodies.ts';
import { eventually, startReceiver, type WebhookReceiver } from '../../test/support/webhook-receiver.ts';
import { valueImports } from './count.ts';
import { type Calls, type CoveredProcess, startCovered } from './covered-process.ts';

/** The files of each walk. */
export type Walks = { body: string[]; image: string[]; messages: string[] };

/** Each walk is gone so often, by an account that was never seen before. */
const TIMES = 8;

/** What follows an answer, such as the record of an attempt, belongs to the walk. */
const AFTERWARDS_MS = 500;

const APP_SECRET = 'house-app-secret';

type Account = { wabaId: string; phoneNumberId: string; displayPhoneNumber: string; apiKeys: string[] };

/**
 * Runs API and worker and counts, for each walk, the files with a function that every single request calls: in all but
 * one of the times more often than it is called in the quiet time of the same length that follows. What every request of the API passes is counted
 * with `messages` and not with `body`. `image` begins when intake has committed the image: its workflow is kept from
 * starting until the webhook of its message has arrived, and what a text or that first part passes is not counted.
 */
export async function measureWalks(paths: { isDev: RegExp; imageWorkflow: string }): Promise<Walks> {
  const cleanups: (() => Promise<void>)[] = [];
  try {
    const stack = await startStack(cleanups);
    const { api, worker, accounts } = stack;
    const frame = await walk(accounts, [api], () => getOk(stack, '/healthz'));
    const text = await walk(accounts, [api, worker], async (account) => {
      await post(stack, bodyOf(account, [textMessage(`wamid.TEXT${account.wabaId}`, 'hello')]));
      await arrival(stack, 'message', `wamid.TEXT${account.wabaId}`);
    });
    const { intake, media: image } = await walkImage(stack);
    const conversations = await conversationsOf(stack);
    const messages = await walk(accounts, [api], (account) =>
      getOk(stack, `/api/external/conversations/${conversations.get(account)}/messages`, account.apiKeys[1]),
    );
    const filesOf = (functions: readonly string[]) =>
      [...new Set(functions.map((each) => each.split(' ', 1)[0] ?? ''))].filter(
        (file) => !paths.isDev.test(file),
      );
    // Workflows run in a sandbox of their own, which the coverage does not see.
    const workflow = valueImports(paths.imageWorkflow, 'src/');
    return {
      body: filesOf(without(text.called, frame.called)),
      image: [...new Set([...filesOf(without(image.called, [...text.seen, ...intake.seen])), ...workflow])],
      messages: filesOf(messages.called),
    };
  } finally {
    for (const cleanup of cleanups.reverse()) await cleanup();
  }
}

function without(functions: readonly string[], others: readonly string[]): string[] {
  const known = new Set(others);
  return functions.filter((each) => !known.has(each));
}

type Stack = {
  apiUrl: string;
  api: CoveredProcess;
  worker: CoveredProcess;
  receiver: WebhookReceiver;
  accounts: Account[];
  database: pg.Pool;
};

async function startStack(cleanups: (() => Promise<void>)[]): Promise<Stack> {
  const servers = await startTestInfrastructure(() => {});
  cleanups.push(() => servers.stop());
  const database = new pg.Pool({ connectionString: servers.postgresUrl, max: 1 });
  cleanups.push(() => database.end());
  const accessToken = 'house-access-token';
  const upstream = await startUpstreamServer({
    ...{ host: '127.0.0.1', port: 0, appSecret: APP_SECRET, verifyToken: 'house-verify-token', accessToken },
    ingressUrl: 'http://127.0.0.1:9',
  });
  cleanups.push(() => upstream.close());
  const receiver = await startReceiver();
  cleanups.push(() => receiver.close());
  const settings = {
    HELIOGRAPH_MODE: 'development',
    HELIOGRAPH_API_DRAIN_NOTICE_MS: '0',
    HELIOGRAPH_DATABASE_URL: servers.postgresUrl,
    HELIOGRAPH_TEMPORAL_ADDRESS: servers.temporalAddress,
    HELIOGRAPH_OBJECT_STORE_URL: servers.minioUrl,
    HELIOGRAPH_OBJECT_STORE_ACCESS_KEY: servers.minioCredentials.accessKey,
    HELIOGRAPH_OBJECT_STORE_SECRET_KEY: servers.minioCredentials.secretKey,
    HELIOGRAPH_API_HOST: '127.0.0.1',
    HELIOGRAPH_API_PORT: '0',
    HELIOGRAPH_PUBLIC_URL: 'https://gateway.example',
    HELIOGRAPH_UPSTREAM_GRAPH_URL: upstream.url,
    HELIOGRAPH_UPSTREAM_APP_SECRETS: APP_SECRET,
    HELIOGRAPH_UPSTREAM_VERIFY_TOKEN: 'house-verify-token',
    HELIOGRAPH_UPSTREAM_MEDIA_HOSTS: '127.0.0.1',
    HELIOGRAPH_ENCRYPTION_KEYS: `house:${randomBytes(32).toString('base64')}`,
    HELIOGRAPH_WEBHOOK_ALLOW_HTTP: 'true',
    HELIOGRAPH_WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    // A workflow beside an attempt is no part of the way to the endpoint.
    HELIOGRAPH_DELIVERY_WORKFLOWS: 'failures',
  };
  await heliograph(settings, 'migrate');
  const accounts = await seedAccounts(settings, receiver.url, accessToken);
  const api = await startCovered('api', settings, /api listens at http:\/\/[\d.]+:\d+/);
  cleanups.push(() => api.stop());
  const worker = await startCovered('worker', settings, /worker ready/);
  cleanups.push(() => worker.stop());
  const [apiUrl = ''] = /http:\/\/[\d.]+:\d+/.exec(/api listens at \S+/.exec(api.printed())?.[0] ?? '') ?? [];
  return { apiUrl, api, worker, receiver, accounts, database };
}

async function seedAccounts(
  settings: Readonly<Record<string, string>>,
  receiverUrl: string,
  accessToken: string,
): Promise<Account[]> {
  const admin = async (...args: string[]) =>
    JSON.parse(await heliograph(settings, 'admin', ...args, '--json')) as Record<string, unknown>;
  const { userId } = await admin('tenant', 'create', '--name', 'House');
  const displayPhoneNumber = '12025550100';
  return await Promise.all(
    Array.from({ length: TIMES }, async (_, index): Promise<Account> => {
      const wabaId = `90000000000010${index}`;
      const phoneNumberId = `80000000000011${index}`;
      const waba = ['--tenant', String(userId), '--access-token', accessToken];
      await admin(
        'waba',
        'add',
        ...waba,
        '--waba',
        wabaId,
        '--number',
        `${phoneNumberId}:${displayPhoneNumber}`,
      );
      await admin('endpoint', 'add', '--waba', wabaId, '--url', receiverUrl);
      const keys = [
        await admin('key', 'create', '--waba', wabaId, '--scopes', 'read,send,manage_webhooks'),
        await admin('key', 'create', '--waba', wabaId, '--scopes', 'read,send,manage_webhooks'),
      ];
      return { wabaId, phoneNumberId, displayPhoneNumber, apiKeys: keys.map(({ apiKey }) => String(apiKey)) };
    }),
  );
}

async function heliograph(settings: Readonly<Record<string, string>>, ...args: string[]): Promise<string> {
  const env = { PATH: process.env.PATH, ...settings };
  const { stdout } = await promisify(execFile)(process.execPath, [...NODE_FLAGS, 'src/main.ts', ...args], {
    env,
  });
  return stdout;
}

/** An image in two walks: until its message is with the endpoint, and from the start of its workflow to `media.ready`. */
async function walkImage(stack: Stack): Promise<{ intake: Walk; media: Walk }> {
  const { api, worker, accounts, database } = stack;
  await database.query(`
    create function wait_for_the_walk() returns trigger language plpgsql as
      'begin new.next_start_at := ''infinity''; return new; end';
    create trigger wait_for_the_walk before insert on workflow_tasks
      for each row when (new.workflow_type = 'storeInboundMedia') execute function wait_for_the_walk()`);
  const intake = await walk(accounts, [api, worker], async (account) => {
    await post(stack, bodyOf(account, [imageMessage(`wamid.IMAGE${account.wabaId}`, '600000000000001')]));
    await arrival(stack, 'message', `wamid.IMAGE${account.wabaId}`);
  });
  const media = await walk(accounts, [api, worker], async ({ wabaId }) => {
    await database.query('update workflow_tasks set next_start_at = now() where waba_id = $1', [wabaId]);
    await database.query('notify heliograph_workflow_tasks');
    await arrival(stack, 'media.ready', `wamid.IMAGE${wabaId}`);
  });
  return { intake, media };
}

/** The functions that every request called, and all that ran meanwhile. */
type Walk = { called: string[]; seen: string[] };

async function walk(
  accounts: readonly Account[],
  processes: readonly CoveredProcess[],
  go: (account: Account) => Promise<unknown>,
): Promise<Walk> {
  const seen = new Set<string>();
  const timesCalled: Calls = new Map();
  for (const account of accounts) {
    await takeAll(processes);
    const startMs = performance.now();
    await go(account);
    await sleep(AFTERWARDS_MS);
    const walked = await takeAll(processes);
    await sleep(performance.now() - startMs);
    const quiet = await takeAll(processes);
    for (const [name, calls] of walked) {
      if (calls > (quiet.get(name) ?? 0)) timesCalled.set(name, (timesCalled.get(name) ?? 0) + 1);
    }
    for (const name of [...walked.keys(), ...quiet.keys()]) seen.add(name);
  }
  const called = [...timesCalled].filter(([, times]) => times >= accounts.length - 1).map(([name]) => name);
  return { called, seen: [...seen] };
}

async function takeAll(processes: readonly CoveredProcess[]): Promise<Calls> {
  const all: Calls = new Map();
  for (const covered of processes) {
    for (const [name, calls] of await covered.takeCalls()) all.set(name, (all.get(name) ?? 0) + calls);
  }
  return all;
}

async function post({ apiUrl }: Stack, body: Buffer): Promise<void> {
  const status = await postUpstream({ ingressUrl: apiUrl, appSecret: APP_SECRET, timeoutMs: 10_000 }, body);
  if (status !== 200) throw new Error(`the ingress answered ${status}`);
}

async function arrival({ receiver }: Stack, eventType: string, messageId: string): Promise<void> {
  await eventually(`${eventType} of ${messageId}`, () =>
    receiver.received.some(
      ({ body }) => body.includes(`"eventType":"${eventType}"`) && body.includes(`"${messageId}"`),
    ),
  );
}

async function conversationsOf(stack: Stack): Promise<Map<Account, string>> {
  const found = new Map<Account, string>();
  for (const account of stack.accounts) {
    const { data } = JSON.parse(await getOk(stack, '/api/external/conversations', account.apiKeys[0]));
    found.set(account, data[0].id);
  }
  return found;
}

async function getOk({ apiUrl }: Stack, path: string, apiKey = ''): Promise<string> {
  const response = await fetch(`${apiUrl}${path}`, { headers: { authorization: `Bearer ${apiKey}` } });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text}`);
  return text;
}
