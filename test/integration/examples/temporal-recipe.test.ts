import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Worker } from '@temporalio/worker';
import { afterEach, describe, expect, inject, test } from 'vitest';
import { makeReceiver } from '../../../examples/temporal/receiver.ts';
import { webhookHeaders } from '../../../src/engine/deliveries/webhook-request.ts';
import { newWebhookSecret, signStandard } from '../../../src/engine/endpoint/webhook-signature.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { connectTemporal } from '../../../src/platform/temporal/worker-connection.ts';
import { useTemporal } from '../../support/temporal-client.ts';
import { testSettings } from '../../support/test-settings.ts';

const client = useTemporal();
const folder = fileURLToPath(new URL('../../../examples/temporal/', import.meta.url));

/** With temporalio from PyPI: HELIOGRAPH_TEST_PYTHON names one of a virtual environment. */
const PYTHON = process.env.HELIOGRAPH_TEST_PYTHON ?? 'python3';
const hasPython = spawnSync(PYTHON, ['-c', 'import temporalio']).status === 0;

type Running = { url: string; stop(): Promise<void> };

const started: Running[] = [];
afterEach(async () => {
  for (const { stop } of started.splice(0)) await stop();
});

async function runTypeScript(secret: string, taskQueue: string): Promise<Running> {
  const { connection, nativeConnection } = await connectBoth();
  const worker = await Worker.create({
    connection: nativeConnection,
    taskQueue,
    namespace: client().options.namespace,
    workflowsPath: `${folder}await-event.ts`,
  });
  const running = worker.run();
  const server = makeReceiver({ client: client(), taskQueue, secret });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    stop: async () => {
      await new Promise((resolve) => server.close(resolve));
      worker.shutdown();
      await running;
      await nativeConnection.close();
      await connection.close();
    },
  };
}

async function connectBoth() {
  const { NativeConnection } = await import('@temporalio/worker');
  const { connection } = await connectTemporal(loadConfig(testSettings('postgres://unused')).temporal);
  const address = inject('infrastructure').temporalAddress;
  return { connection, nativeConnection: await NativeConnection.connect({ address }) };
}

async function runPython(secret: string, taskQueue: string): Promise<Running> {
  const env = {
    ...process.env,
    HELIOGRAPH_WEBHOOK_SECRET: secret,
    TASK_QUEUE: taskQueue,
    TEMPORAL_NAMESPACE: client().options.namespace,
    TEMPORAL_ADDRESS: inject('infrastructure').temporalAddress,
    PYTHONDONTWRITEBYTECODE: '1',
  };
  const child = spawn(PYTHON, ['receiver.py'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const [line] = await Promise.race([
    createInterface({ input: child.stdout })
      [Symbol.asyncIterator]()
      .next()
      .then(({ value }) => [String(value)]),
    ended.then(() => ['']),
  ]);
  return {
    url: `http://127.0.0.1:${line}/`,
    stop: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

const RECIPES = [
  { name: 'TypeScript', run: runTypeScript, isThere: true },
  { name: 'Python', run: runPython, isThere: hasPython },
];

describe.each(RECIPES)('the recipe awaitEvent in $name', ({ run, isThere }) => {
  test.skipIf(!isThere)(
    'takes each webhook once, in order, and lets a workflow wait for what follows',
    async () => {
      const secret = newWebhookSecret();
      const customer = `1202555${randomBytes(2).readUInt16BE()}`;
      const running = await run(secret, `recipe-${randomBytes(4).toString('hex')}`);
      started.push(running);
      const texts = ['hello', 'order 1', 'maybe', 'yes', 'order 2', 'no', 'order 3', 'yes'];
      for (const [index, text] of texts.entries()) {
        const send = (attempt: number, deliveryId: string) =>
          post(running.url, { secret, customer, text, index, attempt, deliveryId });
        expect(await send(1, `dlv_${index}`)).toBe(204);
        // Once more, because its response was lost, and as a replay.
        expect(await send(2, `dlv_${index}`)).toBe(204);
        expect(await send(1, `dlv_replay_${index}`)).toBe(204);
      }
      const handle = client().workflow.getHandle(`customer/900000000000101/${customer}`);
      await expect.poll(() => handle.query('confirmedOrders')).toEqual(['order 1', 'order 3']);
      const forged = {
        secret: newWebhookSecret(),
        customer,
        text: 'yes',
        index: 9,
        attempt: 1,
        deliveryId: 'x',
      };
      expect(await post(running.url, forged)).toBe(401);
      await handle.terminate();
    },
  );
});

type Sent = {
  secret: string;
  customer: string;
  text: string;
  index: number;
  attempt: number;
  deliveryId: string;
};

/** POSTs a webhook as the service does and returns the status. */
async function post(
  url: string,
  { secret, customer, text, index, attempt, deliveryId }: Sent,
): Promise<number> {
  const eventId = `wamid.${customer}.${index}`;
  const event = { eventType: 'message', userId: 1, wabaId: '900000000000101', eventId };
  const data = { message: { from: customer, id: eventId, type: 'text', text: { body: text } } };
  const body = Buffer.from(JSON.stringify({ ...event, data }));
  const webhookId = `evt_${customer}_${index}`;
  const timestampSeconds = Math.floor(Date.now() / 1_000);
  const signature = signStandard({ secrets: [secret], id: webhookId, timestampSeconds, body });
  const headers = webhookHeaders({
    webhookId,
    timestampSeconds,
    signature,
    eventType: 'message',
    eventId,
    deliveryId,
    attempt,
    sequence: String(index + 1),
    replay: false,
  });
  return (await fetch(url, { method: 'POST', headers, body })).status;
}
