import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { deliveryUuidOf } from '../../../../src/platform/public-ids.ts';
import type { HttpSender, SendResult } from '../../../../src/platform/sender/http-sender.ts';
import { failure, response } from '../../../unit/deliveries/send-results.ts';

/** One request as the receivers saw it. */
export type Reception = {
  deliveryId: string;
  /** Endpoint and lane of its row at that moment. */
  lane: string;
  beginMs: number;
  endMs: number;
  /** When it began by the wall clock, which is the database's too. */
  beganAtMs: number;
  ok: boolean;
  /** The numbers of the events in it, in their order. */
  numbers: number[];
};

export type Receivers = {
  /** In place of the network: every endpoint's receiver. */
  sender: HttpSender;
  receptions: Reception[];
  /** Events that arrived with other bytes than before. */
  changed: string[];
  /** From now on everything is accepted. */
  heal(): void;
};

const SLOWEST_MS = 3;

/** Receivers that are slow, fail, hang and go away at random, and write down what they get. */
export function makeReceivers(database: Database, dice: () => number): Receivers {
  const receptions: Reception[] = [];
  const changed: string[] = [];
  const bodies = new Map<string, string>();
  let healthy = false;
  return {
    receptions,
    changed,
    heal: () => {
      healthy = true;
    },
    sender: {
      close: async () => undefined,
      send: async ({ headers, body, timeoutMs = Number.POSITIVE_INFINITY }) => {
        const deliveryId = deliveryUuidOf(headers['X-Service-Delivery-Id'] ?? '') ?? '';
        const deadlineMs = performance.now() + timeoutMs;
        const lane = await laneOf(database, deliveryId);
        const beginMs = performance.now();
        if (beginMs >= deadlineMs) return failure('timeout');
        const text = Buffer.from(body ?? '').toString();
        const name = headers['webhook-id'] ?? '';
        if ((bodies.get(name) ?? text) !== text) changed.push(`${name} has other bytes than before`);
        bodies.set(name, text);
        const times = { beginMs, endMs: beginMs, beganAtMs: Date.now() };
        const reception = { deliveryId, lane, ...times, ok: false, numbers: numbersIn(JSON.parse(text)) };
        receptions.push(reception);
        await sleep(dice() * SLOWEST_MS);
        const result = healthy ? response(200) : anyResult(dice());
        // A sender aborts at its deadline, however late this process gets to run.
        reception.endMs = Math.min(performance.now(), deadlineMs);
        reception.ok = result.outcome === 'response' && result.statusCode === 200;
        return result;
      },
    },
  };
}

type Body = { data?: { n?: number }; events?: Body[] };

function numbersIn({ data, events = [] }: Body): number[] {
  return [data?.n ?? [], events.flatMap(numbersIn)].flat();
}

function anyResult(luck: number): SendResult {
  if (luck < 0.72) return response(200);
  if (luck < 0.93) return response(500);
  return luck < 0.99 ? failure('timeout') : response(410);
}

/** Of a row that nobody else can move, because it is claimed. */
async function laneOf(database: Database, deliveryId: string): Promise<string> {
  const [row] = await query<{ lane: string }>(
    database,
    `select endpoint_id || ' ' || lane as lane from delivery_queue where delivery_id = cast(:deliveryId as uuid)`,
    { deliveryId },
  );
  return row?.lane ?? `gone ${deliveryId}`;
}
