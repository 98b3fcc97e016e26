/** The upstream platform's part: posts signed bodies to the ingress. A process of its own, driven by bench/main.ts. */

import { answerParent } from './child-process.ts';
import { openHttpConnections } from './driver/http-connections.ts';
import { sendAsPlanned } from './driver/pacing.ts';
import { buildUpstreamRequests } from './driver/upstream-requests.ts';
import type { RunPlan, RunTimes } from './run-plan.ts';

export type DriverProtocol = {
  /** Builds and signs everything, so that it costs nothing during the run. */
  prepare: {
    argument: { plan: RunPlan; ingress: { host?: string; port: number; appSecret: string } };
    result: null;
  };
  run: { argument: null; result: RunTimes };
};

let prepared: { plan: RunPlan; host: string; port: number; requests: Buffer[] } | null = null;

answerParent<DriverProtocol>({
  prepare: ({ plan, ingress }) => {
    const { host = '127.0.0.1', port } = ingress;
    prepared = { plan, host, port, requests: buildUpstreamRequests(plan, ingress) };
    return null;
  },
  run: async () => {
    if (prepared === null) throw new Error('nothing is prepared');
    const { plan, host, port, requests } = prepared;
    const initial = Math.min(plan.concurrency, plan.count, initialConnections(plan));
    const connections = await openHttpConnections(port, { host, initial, max: plan.concurrency });
    try {
      return await sendAsPlanned(plan, (n, done) => connections.send(requests[n] ?? Buffer.alloc(0), done));
    } finally {
      connections.close();
    }
  },
});

/** At a rate: about as many as will be in use, for the ingress closes those that nobody uses. */
function initialConnections({ ratePerSecond, concurrency }: RunPlan): number {
  return ratePerSecond === null ? concurrency : Math.ceil(ratePerSecond / 50);
}
