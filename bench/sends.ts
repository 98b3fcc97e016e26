/**
 * How long a single message takes from the request to its acceptance, alone and beside a broadcast or scheduled messages of
 * its number, in turns. Upstream is a server here that accepts at once. Run: npm run bench:sends -- --help
 */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { setAccessToken } from '../src/features/accounts/wabas.ts';
import { apiKeyHints, hashApiKey, newApiKey } from '../src/features/keys/api-key.ts';
import { insertApiKey } from '../src/features/keys/api-key-store.ts';
import { SYSTEM } from '../src/platform/audit/audit.ts';
import { readCpuMs } from './process-usage.ts';
import { percentilesOf } from './report/percentiles.ts';
import { seedTargets } from './stack/seed.ts';
import { startStack } from './stack/stack.ts';

const { values } = parseArgs({
  options: {
    help: { type: 'boolean', short: 'h', default: false },
    beside: { type: 'string', default: 'broadcast' },
    messages: { type: 'string', default: '10000' },
    rate: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '20' },
    turns: { type: 'string', default: '4' },
  },
});

if (values.help) {
  process.stdout.write(
    [
      'npm run bench:sends -- [options]',
      '',
      '  --beside KIND   broadcast or scheduled: what leaves beside the single messages (broadcast)',
      '  --messages N    how many there are of it (10000)',
      '  --rate N        single messages per second, of the number and of another one each (5)',
      '  --seconds N     how long a turn lasts (20)',
      '  --turns N       how many turns alone, and as many beside them (4)',
      '',
    ].join('\n'),
  );
  process.exit(0);
}

const many = Number(values.messages);
const rate = Number(values.rate);
const seconds = Number(values.seconds);
const turns = Number(values.turns);
const log = (line: string) => process.stderr.write(`${line}\n`);

/** The number of a WABA, as `seedTargets` names both. */
function numbersOf(url: string) {
  const [, suffix] = /900000000(\d+)\/phone_numbers/.exec(url) ?? [];
  if (suffix === undefined) return { data: [] };
  return {
    data: [{ id: `800000000${suffix}`, display_phone_number: '12025550100', verified_name: 'Bench' }],
  };
}

/** Accepts every message, and counts them. */
const upstream = { accepted: 0, url: '' };
const server = createServer((request, response) => {
  request.resume().on('end', () => {
    const isSend = request.method === 'POST';
    if (isSend) upstream.accepted += 1;
    const id = `wamid.bench${upstream.accepted}`;
    const accepted = { messaging_product: 'whatsapp', contacts: [], messages: [{ id }] };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(isSend ? accepted : numbersOf(request.url ?? '')));
  });
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
upstream.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

const stack = await startStack({
  log,
  processes: 'two',
  databaseDays: 1,
  checkout: null,
  profileDir: null,
  settings: {
    HELIOGRAPH_UPSTREAM_GRAPH_URL: upstream.url,
    HELIOGRAPH_RATE_LIMIT_WRITES_PER_SECOND: '100000',
    HELIOGRAPH_RATE_LIMIT_READS_PER_SECOND: '100000',
  },
  onCrash: (error) => {
    log(error.message);
    process.exit(1);
  },
});

type Sender = { phoneNumberId: string; authorization: string };

/** A tenant with one number and a key. */
async function addNumber(n: number): Promise<Sender> {
  const [target] = await seedTargets(stack, n, ['http://127.0.0.1:9/']);
  if (target === undefined) throw new Error('nothing was set up');
  const { wabaId, phoneNumberId } = target;
  const key = newApiKey();
  const { prefix, last4 } = apiKeyHints(key);
  const fields = { name: 'bench', keyHash: hashApiKey(key), prefix, lastFour: last4, expiresAt: null };
  await insertApiKey(stack.database, wabaId, fields);
  await setAccessToken({ ...stack, actor: SYSTEM }, wabaId, 'EAAG-bench');
  await stack.database
    .raw('update webhook_endpoints set event_types = array[]::text[]')
    .catch(() => undefined);
  return { phoneNumberId, authorization: `Bearer ${key}` };
}

async function call(by: Sender, method: string, path: string, body?: object) {
  const response = await fetch(`http://127.0.0.1:${stack.apiPort}/api/external${path}`, {
    method,
    headers: { authorization: by.authorization, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
  return answer as { id: string; state: string; counts?: { accepted: number; queued: number } };
}

let customers = 0;
/** Of no other message, so that no pace of a recipient counts. */
const customer = () => `1202${String(5_000_000 + customers++)}`;

/** The times of single messages of a number at a steady rate, in ms; the first after `delayMs`. */
async function singles(by: Sender, delayMs: number): Promise<number[]> {
  const times: Promise<number>[] = [];
  const startMs = performance.now() + delayMs;
  for (let n = 0; n < seconds * rate; n += 1) {
    await sleep(Math.max(0, startMs + (n * 1_000) / rate - performance.now()));
    times.push(timeOf(by));
  }
  return await Promise.all(times);
}

async function timeOf(by: Sender): Promise<number> {
  const startMs = performance.now();
  const { phoneNumberId } = by;
  const { state } = await call(by, 'POST', '/messages', {
    phoneNumberId,
    to: customer(),
    type: 'text',
    text: { body: 'Your code is 4711.' },
  });
  return state === 'accepted' ? performance.now() - startMs : Number.POSITIVE_INFINITY;
}

/** Begins what leaves beside the singles; returns what ends it. */
async function begin(by: Sender): Promise<() => Promise<void>> {
  const { phoneNumberId } = by;
  const template = { name: 'winter_sale', language: { code: 'en_US' } };
  if (values.beside === 'broadcast') {
    const { id } = await call(by, 'POST', '/broadcasts', { name: 'Bench', phoneNumberId, template });
    for (let added = 0; added < many; added += 1_000) {
      const recipients = Array.from({ length: Math.min(1_000, many - added) }, () => ({ to: customer() }));
      await call(by, 'POST', `/broadcasts/${id}/recipients`, { recipients });
    }
    await call(by, 'POST', `/broadcasts/${id}/start`);
    return async () => void (await call(by, 'POST', `/broadcasts/${id}/cancel`));
  }
  const sendAt = new Date(Date.now() + 60_000 + many * 30);
  const ids: string[] = [];
  for (let made = 0; made < many; made += 50) {
    const body = () => ({
      phoneNumberId,
      to: customer(),
      type: 'template',
      template,
      sendAt: sendAt.toISOString(),
    });
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => call(by, 'POST', '/messages', body())),
    );
    ids.push(
      ...answers.map((answer) =>
        String((answer as unknown as { serviceMessageId: string }).serviceMessageId),
      ),
    );
  }
  log(`${many} are scheduled, ${Math.round((sendAt.getTime() - Date.now()) / 1_000)} s before their time`);
  await sleep(Math.max(0, sendAt.getTime() - Date.now()));
  return async () => {
    for (let at = 0; at < ids.length; at += 50)
      await Promise.all(
        ids.slice(at, at + 50).map((id) => call(by, 'POST', `/messages/${id}/cancel`).catch(() => null)),
      );
  };
}

type Times = { own: number[]; other: number[] };
const alone: Times = { own: [], other: [] };
const beside: Times = { own: [], other: [] };

/** Returns the CPU time that each process took meanwhile, in ms. */
async function measure(into: Times, own: Sender, other: Sender): Promise<Record<string, number>> {
  const before = readCpuMs(stack.pids());
  // Never two at once: Temporal's development server works for them one after the other.
  const [ofOwn, ofOther] = await Promise.all([singles(own, 0), singles(other, 500 / rate)]);
  into.own.push(...ofOwn);
  into.other.push(...ofOther);
  const after = Object.entries(readCpuMs(stack.pids()));
  return Object.fromEntries(after.map(([name, ms]) => [name, ms - (before[name] ?? 0)]));
}

let isMet = true;
try {
  await stack.useProduct(
    { deliveryWorkflows: 'auto', workers: 1, coresPerWorker: null, tracesPercent: 0 },
    { fresh: true },
  );
  const [own, other] = [await addNumber(1), await addNumber(2)];
  await measure({ own: [], other: [] }, own, other);
  for (let turn = 1; turn <= turns; turn += 1) {
    const cpuAlone = await measure(alone, own, other);
    const end = await begin(own);
    // Until it leaves at its pace.
    await sleep(5_000);
    const before = upstream.accepted;
    const cpuBeside = await measure(beside, own, other);
    const perSecond = (upstream.accepted - before) / seconds - 2 * rate;
    log(
      `turn ${turn}: ${perSecond.toFixed(1)} messages of the ${values.beside} per second beside the singles`,
    );
    const cpu = Object.entries(cpuBeside).map(([name, ms]) => {
      const more = (ms - (cpuAlone[name] ?? 0)) / (perSecond * seconds);
      return `${name} ${more.toFixed(2)}`;
    });
    log(`turn ${turn}: CPU time of each of them in ms: ${cpu.join(', ')}`);
    await end();
    await untilQuiet();
  }
  for (const which of ['own', 'other'] as const) {
    const [a, b] = [percentilesOf(alone[which]), percentilesOf(beside[which])];
    const ratio = b.p95 / a.p95;
    isMet &&= ratio <= 1.1;
    const text = (p: { p50: number; p95: number; p99: number }) =>
      `p50 ${p.p50.toFixed(1)} p95 ${p.p95.toFixed(1)} p99 ${p.p99.toFixed(1)} ms`;
    process.stdout.write(
      `singles of ${which === 'own' ? 'its number' : 'another number'}: alone ${text(a)}; beside ${text(b)}; p95 ${((ratio - 1) * 100).toFixed(0)} %\n`,
    );
  }
} finally {
  await stack.stop();
  server.close();
}
process.exit(isMet ? 0 : 1);

/** What upstream had been asked already is over. */
async function untilQuiet(): Promise<void> {
  for (let last = -1; last !== upstream.accepted; ) {
    last = upstream.accepted;
    await sleep(2_000);
  }
}
