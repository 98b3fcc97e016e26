/** Where upstream bodies are addressed to: a number whose WABA has exactly one endpoint. */
export type Target = { wabaId: string; phoneNumberId: string };

/** What a driver sends in one run. Who reads the plan knows which event has to arrive where. */
export type RunPlan = {
  /** Part of every id, so that no two runs send the same one. */
  run: number;
  /** `statuses`: one body holds sent, delivered and read of one message; `200 statuses`: sent of as many messages. */
  body: 'message' | 'statuses' | '200 statuses';
  count: number;
  /** Null: closed loop, each connection sends as soon as it has its answer. */
  ratePerSecond: number | null;
  /** Connections (closed loop), or the most of them (open loop). */
  concurrency: number;
  targets: Target[];
};

/** Monotonic times of one run by number of the body; `answeredMs` and `status` are 0 where no answer came. */
export type RunTimes = {
  scheduledMs: Float64Array;
  sentMs: Float64Array;
  answeredMs: Float64Array;
  status: Uint16Array;
};

/** A webhook as the receiver got it. */
export type Arrival = {
  endpoint: number;
  webhookId: string;
  eventId: string;
  /** Of a `status` event, else empty. */
  status: string;
  sequence: number;
  attempt: number;
  arrivedMs: number;
  /** Answered 200; else the receiver refused it on purpose. */
  accepted: boolean;
};

export const STATUSES = ['sent', 'delivered', 'read'] as const;

/** Known customers are the usual case, so few of them write all messages. */
const CUSTOMERS = 500;

/** Who writes body `n` of a run, and to which target: the same customer always writes to the same. */
export function addressOf(plan: RunPlan, n: number): { customer: number; target: number } {
  const customer = mixed(plan.run * 0x9e3779b1 + n) % CUSTOMERS;
  return { customer, target: customer % plan.targets.length };
}

/** The eventId of body `n`. */
export function eventIdOf(run: number, n: number): string {
  return `wamid.HBgLMTIwMjU1NTAxNDMVAgASGBQ.${run}.${n}`;
}

/** The number of the body that an eventId of this run came from; null when it is another run's. */
export function bodyNumberOf(run: number, eventId: string): number | null {
  const [, , eventRun, n] = eventId.split('.');
  return Number(eventRun) === run && n !== undefined ? Number(n) : null;
}

/** Spreads neighbouring numbers over 32 bits (the finalizer of MurmurHash3). */
function mixed(seed: number): number {
  let bits = seed | 0;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
