import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Answer, ReceiverKind } from '../support/load/bad-receivers.ts';
import type { WebhookContent } from './webhook-content.ts';

/** One webhook at one endpoint, as the receivers' process reports it. */
export type ArrivalReport = {
  type: 'arrival';
  n: number;
  endpoint: number;
  webhookId: string;
  deliveryId: string;
  sequence: number;
  attempt: number;
  bodyHash: string;
  content: WebhookContent | null;
  answer: Answer;
  /** Arrivals and answers of all endpoints in one order. */
  arrivedTick: number;
  arrivedMs: number;
};

export type SettledReport = {
  type: 'settled';
  n: number;
  /** A 2xx went out to its last byte. */
  accepted: boolean;
  answeredTick: number | null;
  answeredMs: number | null;
};

export type LoggedArrival = Omit<ArrivalReport, 'type'> & Omit<SettledReport, 'type' | 'n'>;

export type Receivers = {
  urls: string[];
  /** Everything that has arrived so far. */
  arrivals(): LoggedArrival[];
  beGood(): void;
  close(): Promise<void>;
};

type Message = ArrivalReport | SettledReport | { type: 'listening'; urls: string[] };

const SCRIPT = fileURLToPath(new URL('receiver-process.ts', import.meta.url));

/** Starts one receiver per kind, all in one process beside this one. */
export async function startReceivers(
  options: { host?: string; seed: number; kinds: ReceiverKind[]; dripIntervalMs: number },
  onAccepted: (arrival: LoggedArrival) => void,
): Promise<Receivers> {
  const child = fork(SCRIPT, [JSON.stringify(options)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const arrivals = new Map<number, LoggedArrival>();
  const listening = Promise.withResolvers<string[]>();
  child.once('exit', (code) => listening.reject(new Error(`the receivers ended with ${code}`)));
  child.on('message', (message: Message) => {
    if (message.type === 'listening') listening.resolve(message.urls);
    else if (message.type === 'arrival') {
      const { type: _, ...arrival } = message;
      arrivals.set(arrival.n, { ...arrival, accepted: false, answeredTick: null, answeredMs: null });
    } else {
      const { type: _, ...settled } = message;
      const arrival = arrivals.get(settled.n);
      if (arrival === undefined) return;
      Object.assign(arrival, settled);
      if (arrival.accepted) onAccepted(arrival);
    }
  });
  return {
    urls: await listening.promise,
    arrivals: () => [...arrivals.values()],
    beGood: () => void child.send('be-good'),
    close: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
  };
}
