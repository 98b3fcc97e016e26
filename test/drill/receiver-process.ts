import { createHash } from 'node:crypto';
import {
  type Arrival,
  type BadReceiver,
  type ReceiverKind,
  startBadReceiver,
} from '../support/load/bad-receivers.ts';
import { seededDice } from '../support/seeded-dice.ts';
import type { ArrivalReport, SettledReport } from './receivers.ts';
import { contentOf } from './webhook-content.ts';

/** All receivers of a drill, in a process of their own: what they log goes to the drill over IPC. */

const { host, seed, kinds, dripIntervalMs } = JSON.parse(process.argv[2] ?? '{}') as {
  host?: string;
  seed: number;
  kinds: ReceiverKind[];
  dripIntervalMs: number;
};

let arrivals = 0;
const numbers = new WeakMap<Arrival, number>();
const header = (arrival: Arrival, name: string) => String(arrival.headers[name] ?? '');

function reportArrival(endpoint: number, arrival: Arrival): void {
  arrivals += 1;
  numbers.set(arrival, arrivals);
  const report: ArrivalReport = {
    type: 'arrival',
    n: arrivals,
    endpoint,
    webhookId: arrival.webhookId,
    deliveryId: header(arrival, 'x-service-delivery-id'),
    sequence: Number(header(arrival, 'x-service-sequence')),
    attempt: Number(header(arrival, 'x-service-attempt')),
    bodyHash: createHash('sha256').update(arrival.body).digest('hex').slice(0, 16),
    content: contentOf(arrival.body),
    answer: arrival.answer,
    arrivedTick: arrival.arrivedTick,
    arrivedMs: arrival.arrivedMs,
  };
  process.send?.(report);
}

function reportSettled(arrival: Arrival): void {
  const n = numbers.get(arrival);
  if (n === undefined) return;
  const { accepted, answeredTick, answeredMs } = arrival;
  process.send?.({ type: 'settled', n, accepted, answeredTick, answeredMs } satisfies SettledReport);
}

const receivers: BadReceiver[] = [];
for (const [index, kind] of kinds.entries()) {
  receivers.push(
    await startBadReceiver(kind, {
      ...(host === undefined ? {} : { host }),
      dice: seededDice(seed * 1_000 + index),
      goodShare: 0.7,
      dripIntervalMs,
      onArrival: (arrival) => reportArrival(index, arrival),
      onSettled: reportSettled,
    }),
  );
}
process.on('message', (message) => {
  if (message === 'be-good') for (const receiver of receivers) receiver.beGood();
});
process.on('disconnect', () => process.exit(0));
// Ctrl-C in a terminal reaches the whole group; the drill ends this process when it has stopped the rest.
process.on('SIGINT', () => undefined);
process.send?.({ type: 'listening', urls: receivers.map(({ url }) => url) });
