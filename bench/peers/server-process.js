/**
 * What a developer would build instead of the gateway: Fastify that checks upstream's signature, and a kept library of jobs
 * that posts each body, signed and with retries. It keeps no order, knows no customers and has no log. A process of its own,
 * driven by bench/main.ts; its packages are in this folder.
 */

import { createHmac, timingSafeEqual } from 'node:crypto';
import { Queue, Worker } from 'bullmq';
import Fastify from 'fastify';
import { Logger, run, runMigrations } from 'graphile-worker';
import pg from 'pg';
import { Agent, request } from 'undici';
import { answerParent } from '../child-process.ts';

const CONCURRENCY = 64;
const ATTEMPTS = 10;
const TIMEOUT_MS = 15_000;
const SIGNING_SECRET = Buffer.from('bench-signing-secret');
const agent = new Agent({ connections: 2 * CONCURRENCY, pipelining: 1 });

/** Posts a body as Standard Webhooks says; throws unless it is accepted, so that the library tries again. */
async function deliver(receiverUrl, { id, eventId, body }) {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = createHmac('sha256', SIGNING_SECRET)
    .update(`${id}.${timestamp}.${body}`)
    .digest('base64');
  const response = await request(receiverUrl, {
    method: 'POST',
    dispatcher: agent,
    headersTimeout: TIMEOUT_MS,
    headers: {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${signature}`,
      'x-service-event-id': eventId,
    },
    body,
  });
  await response.body.dump();
  if (response.statusCode > 299) throw new Error(`the receiver answered ${response.statusCode}`);
}

/** How each keeps a job: what it returns is resolved once the job is on disk. */
const KEEPERS = {
  async 'graphile-worker'({ databaseUrl, receiverUrl }) {
    const pgPool = new pg.Pool({ connectionString: databaseUrl, max: 20 });
    for (const event of ['error', 'connect'])
      pgPool.on(event, (client) => client.on?.('error', () => undefined));
    await runMigrations({ pgPool });
    await pgPool.query(
      'create table if not exists inbox (id bigint generated always as identity, body text)',
    );
    await run({
      pgPool,
      concurrency: CONCURRENCY,
      pollInterval: 250,
      noHandleSignals: true,
      logger: new Logger(() => () => undefined),
      taskList: { deliver: (job) => deliver(receiverUrl, job) },
    });
    const statement = `with kept as (insert into inbox (body) values ($1))
      select graphile_worker.add_job('deliver', cast($2 as json), max_attempts := ${ATTEMPTS})`;
    return (job) => pgPool.query(statement, [job.body, JSON.stringify(job)]);
  },
  async bullmq({ redisPort, receiverUrl }) {
    const connection = { host: '127.0.0.1', port: redisPort, maxRetriesPerRequest: null };
    const queue = new Queue('webhooks', { connection });
    const worker = new Worker('webhooks', ({ data }) => deliver(receiverUrl, data), {
      connection,
      concurrency: CONCURRENCY,
    });
    worker.on('error', () => undefined);
    const options = { attempts: ATTEMPTS, backoff: { type: 'exponential', delay: 5_000 } };
    return (job) => queue.add('deliver', job, { ...options, jobId: job.id, removeOnComplete: 10_000 });
  },
};

function isSigned(body, header, appSecret) {
  const given = Buffer.from(String(header ?? '').slice('sha256='.length), 'hex');
  const expected = createHmac('sha256', appSecret).update(body).digest();
  return given.length === expected.length && timingSafeEqual(given, expected);
}

async function listen({ name, appSecret, ...places }) {
  const keep = await KEEPERS[name](places);
  const app = Fastify({ logger: false });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
  let count = 0;
  app.post('/upstream/webhook', async ({ body, headers }, reply) => {
    if (!isSigned(body, headers['x-hub-signature-256'], appSecret)) return reply.code(401).send();
    const [{ id: eventId }] = JSON.parse(body).entry[0].changes[0].value.messages;
    count += 1;
    await keep({ id: `msg_${process.pid}_${count}`, eventId, body });
    return '';
  });
  return Number(new URL(await app.listen({ host: '127.0.0.1', port: 0 })).port);
}

answerParent({ listen });
