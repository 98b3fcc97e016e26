import { Worker } from 'node:worker_threads';
import { nowMs } from '../clock.ts';
import type { RunPlan, RunTimes } from '../run-plan.ts';
import { dueAtMs, type PacerMessage } from './schedule.ts';

/** Sends request `n`; `done` is called once, with the status or 0 when there was no answer. */
export type Send = (n: number, done: (status: number) => void) => void;

/** An answer that takes longer counts as none. */
const ANSWER_TIMEOUT_MS = 30_000;

/** How many requests, and when they leave. */
type Pace = Pick<RunPlan, 'count' | 'ratePerSecond' | 'concurrency'>;

/** Sends as the plan says, open or closed loop, and resolves when every request is answered or too late. */
export async function sendAsPlanned(plan: Pace, send: Send): Promise<RunTimes> {
  const { count } = plan;
  const times: RunTimes = {
    scheduledMs: new Float64Array(count),
    sentMs: new Float64Array(count),
    answeredMs: new Float64Array(count),
    status: new Uint16Array(count),
  };
  const finished = Promise.withResolvers<void>();
  let answered = 0;
  const sendOne = (n: number, afterwards: () => void) => {
    times.sentMs[n] = nowMs();
    send(n, (status) => {
      times.answeredMs[n] = status === 0 ? 0 : nowMs();
      times.status[n] = status;
      answered += 1;
      if (answered === count) finished.resolve();
      afterwards();
    });
  };
  if (plan.ratePerSecond === null) sendClosedLoop(plan, times, sendOne);
  else await sendOpenLoop(plan, plan.ratePerSecond, times, sendOne);
  await within(finished.promise, plan.ratePerSecond === null ? null : ANSWER_TIMEOUT_MS);
  return times;
}

type SendOne = (n: number, afterwards: () => void) => void;

/** Resolves when the last request has left: at its time, whether or not earlier ones are answered. */
async function sendOpenLoop(
  { count }: Pace,
  ratePerSecond: number,
  times: RunTimes,
  sendOne: SendOne,
): Promise<void> {
  const pacer = new Worker(new URL('./pacer-thread.ts', import.meta.url), {
    workerData: { ratePerSecond, count },
  });
  await new Promise<void>((resolve, reject) => {
    let sent = 0;
    pacer.on('error', reject);
    pacer.on('message', (message: PacerMessage) => {
      if ('startMs' in message) {
        const { startMs } = message;
        for (let n = 0; n < count; n += 1) times.scheduledMs[n] = dueAtMs(startMs, ratePerSecond, n);
        return;
      }
      for (; sent < message.dueNow; sent += 1) sendOne(sent, () => undefined);
      if (sent === count) resolve();
    });
  });
}

/** As many requests under way as there are connections, until all are sent. */
function sendClosedLoop({ count, concurrency }: Pace, times: RunTimes, sendOne: SendOne): void {
  let next = 0;
  const sendNext = () => {
    if (next >= count) return;
    const n = next;
    next += 1;
    times.scheduledMs[n] = nowMs();
    sendOne(n, sendNext);
  };
  for (let started = 0; started < Math.min(concurrency, count); started += 1) sendNext();
}

async function within(promise: Promise<void>, timeoutMs: number | null): Promise<void> {
  if (timeoutMs === null) return await promise;
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, timeoutMs);
  await Promise.race([promise, late.promise]);
  clearTimeout(timer);
}
