/** The tenants' part: reads over the API. A process of its own, driven by bench/reads.ts. */

import autocannon from 'autocannon';
import { answerParent } from './child-process.ts';
import { openHttpConnections } from './driver/http-connections.ts';
import { sendAsPlanned } from './driver/pacing.ts';
import { type Percentiles, percentilesOf } from './report/percentiles.ts';

export type ReadRun = {
  port: number;
  authorization: string;
  paths: string[];
  connections: number;
};
export type ReadResult = {
  requests: number;
  notOk: number;
  perSecond: number;
  /** Open loop: from the planned time of the request; else from its sending. */
  latencyMs: Percentiles;
};

export type ReadsDriverProtocol = {
  paced: { argument: ReadRun & { ratePerSecond: number }; result: ReadResult };
  flood: { argument: ReadRun & { seconds: number }; result: ReadResult };
};

answerParent<ReadsDriverProtocol>({
  paced: async ({ port, authorization, paths, connections: max, ratePerSecond }) => {
    const requests = paths.map((path) =>
      Buffer.from(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: ${authorization}\r\n\r\n`),
    );
    const connections = await openHttpConnections(port, { initial: 4, max });
    try {
      const plan = { count: paths.length, ratePerSecond, concurrency: max };
      const times = await sendAsPlanned(plan, (n, done) =>
        connections.send(requests[n] ?? Buffer.alloc(0), done),
      );
      const latencies = Array.from(times.answeredMs, (at, n) => at - (times.scheduledMs[n] ?? 0));
      const notOk = times.status.filter((status) => status !== 200).length;
      return { requests: paths.length, notOk, perSecond: ratePerSecond, latencyMs: percentilesOf(latencies) };
    } finally {
      connections.close();
    }
  },
  flood: async ({ port, authorization, paths, connections, seconds }) => {
    const { requests, latency, non2xx, errors } = await autocannon({
      url: `http://127.0.0.1:${port}`,
      connections,
      duration: seconds,
      headers: { authorization },
      requests: paths.map((path) => ({ path })),
    });
    const { p50, p97_5: p95, p99, max } = latency;
    return {
      requests: requests.total,
      notOk: non2xx + errors,
      perSecond: requests.average,
      latencyMs: { p50, p95, p99, max },
    };
  },
});
