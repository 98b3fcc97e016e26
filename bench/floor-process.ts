/**
 * The floor: what any sender that keeps a row per webhook has to do, and nothing else. Inserts a row, POSTs it, updates
 * the row; no Temporal, no order, no retries. A process of its own, driven by bench/main.ts.
 */

import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { Pool } from 'undici';
import { answerParent } from './child-process.ts';
import { sendAsPlanned } from './driver/pacing.ts';
import { addressOf, eventIdOf, type RunPlan, type RunTimes } from './run-plan.ts';

export type FloorProtocol = {
  /** Opens connections and builds bodies, so that it costs nothing during the run. */
  prepare: { argument: { plan: RunPlan; databaseUrl: string; receiverUrl: string }; result: null };
  run: { argument: null; result: RunTimes };
};

const CREATE = `create table if not exists bench_floor (
  id uuid primary key, body bytea not null, state text not null, created_at timestamptz not null default now(),
  delivered_at timestamptz) with (fillfactor = 70)`;
const INSERT = { name: 'insert', text: `insert into bench_floor (id, body, state) values ($1, $2, 'due')` };
const UPDATE = {
  name: 'update',
  text: `update bench_floor set state = 'delivered', delivered_at = now() where id = $1`,
};

type Prepared = { plan: RunPlan; database: pg.Pool; receiver: Pool; bodies: Buffer[] };

let prepared: Prepared | null = null;

answerParent<FloorProtocol>({
  prepare: async ({ plan, databaseUrl, receiverUrl }) => {
    const database = new pg.Pool({ connectionString: databaseUrl, max: plan.concurrency });
    const receiver = new Pool(receiverUrl, { connections: plan.concurrency, pipelining: 1 });
    await database.query(CREATE);
    await openConnections(database, plan.concurrency);
    const bodies = Array.from({ length: plan.count }, (_, n) => bodyOf(plan, n));
    prepared = { plan, database, receiver, bodies };
    return null;
  },
  run: async () => {
    if (prepared === null) throw new Error('nothing is prepared');
    const { plan, database, receiver, bodies } = prepared;
    try {
      return await sendAsPlanned(plan, (n, done) => {
        const body = bodies[n] ?? Buffer.alloc(0);
        deliver({ database, receiver }, eventIdOf(plan.run, n), body).then(done, () => done(0));
      });
    } finally {
      prepared = null;
      await Promise.all([database.end(), receiver.destroy()]);
    }
  },
});

async function openConnections(database: pg.Pool, count: number): Promise<void> {
  const clients = await Promise.all(Array.from({ length: count }, () => database.connect()));
  for (const client of clients) client.release();
}

async function deliver(
  { database, receiver }: { database: pg.Pool; receiver: Pool },
  eventId: string,
  body: Buffer,
): Promise<number> {
  const id = randomUUID();
  await database.query({ ...INSERT, values: [id, body] });
  const headers = {
    'content-type': 'application/json',
    'webhook-id': id,
    'x-service-event-type': 'message',
    'x-service-event-id': eventId,
    'x-service-sequence': '1',
    'x-service-attempt': '1',
  };
  const response = await receiver.request({ method: 'POST', path: '/', headers, body });
  await response.body.dump();
  await database.query({ ...UPDATE, values: [id] });
  return response.statusCode;
}

/** As long as the event that the product makes of the same message. */
function bodyOf(plan: RunPlan, n: number): Buffer {
  const { customer } = addressOf(plan, n);
  const text = `Message ${n}: ${'does it come in another size? '.repeat(1 + (n % 8))}`;
  return Buffer.from(JSON.stringify({ eventId: eventIdOf(plan.run, n), customer, text, filler: FILLER }));
}

const FILLER = 'x'.repeat(500);
