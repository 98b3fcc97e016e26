import type { DeliveryWorkflows } from './stack/stack.ts';

export type Scenario = {
  name: string;
  about: string;
  /** `floor`: the bare loop instead of the product. */
  driver: 'upstream' | 'floor';
  body: 'message' | 'statuses';
  /** Endpoints the bodies are spread over. */
  endpoints: 1 | 100;
  /** Bodies per second; null: as fast as they are taken. */
  ratePerSecond: number | null;
  /**
   * Bodies that are sent first and left out of the latencies: the product goes over from single workflows to a session
   * when a rate begins, and how fast it is then is a figure of its own.
   */
  leadIn: number;
  /** Bodies after those. */
  count: number;
  deliveryWorkflows: DeliveryWorkflows;
  withBadEndpoints: boolean;
};

const RATES = [
  { ratePerSecond: 10, seconds: 30, quickSeconds: 2 },
  { ratePerSecond: 50, seconds: 20, quickSeconds: 2 },
  { ratePerSecond: 200, seconds: 20, quickSeconds: 3 },
  { ratePerSecond: 800, seconds: 15, quickSeconds: 3 },
] as const;

const PLAIN = {
  driver: 'upstream',
  body: 'message',
  endpoints: 1,
  deliveryWorkflows: 'auto',
  withBadEndpoints: false,
} as const;

/** All scenarios in the order in which they run: those that leave something behind come last. */
export function listScenarios(quick: boolean): Scenario[] {
  const leadInSeconds = quick ? 1 : 2;
  return plainScenarios(quick).map((scenario) => ({
    ...scenario,
    leadIn: (scenario.ratePerSecond ?? 0) * leadInSeconds,
  }));
}

type PlainScenario = Omit<Scenario, 'leadIn'>;

function plainScenarios(quick: boolean): PlainScenario[] {
  const pick = (full: number, short: number) => (quick ? short : full);
  const both = [1, 100] as const;
  const suffix = (endpoints: number) => (endpoints === 1 ? '' : `-x${endpoints}`);
  return [
    ...RATES.flatMap(({ ratePerSecond, seconds, quickSeconds }) =>
      both.map((endpoints) => ({
        ...{ ...PLAIN, endpoints, ratePerSecond, name: `message-${ratePerSecond}${suffix(endpoints)}` },
        about: `${ratePerSecond} messages per second`,
        count: ratePerSecond * pick(seconds, quickSeconds),
      })),
    ),
    ...both.map((endpoints) => ({
      ...{ ...PLAIN, endpoints, ratePerSecond: 1200, name: `sustained${suffix(endpoints)}` },
      about: '1200 messages per second: held when backlog stays near 0',
      count: 1200 * pick(20, 3),
    })),
    ...both.map((endpoints) => ({
      ...{ ...PLAIN, endpoints, ratePerSecond: null, name: `flood${suffix(endpoints)}` },
      about: 'messages as fast as the ingress takes them',
      count: pick(20_000, 4_000),
    })),
    {
      ...{ ...PLAIN, body: 'statuses', endpoints: 100, ratePerSecond: 100, name: 'statuses' },
      about: 'sent, delivered and read of one message in one body, 100 bodies per second',
      count: 100 * pick(20, 3),
    },
    ...floorScenarios(pick),
    ...alwaysScenarios(pick),
    {
      ...{ ...PLAIN, endpoints: 100, ratePerSecond: 240, withBadEndpoints: true, name: 'bad-endpoints' },
      about: '200 messages per second, and 40 more to endpoints that misbehave',
      count: 240 * pick(20, 3),
    },
  ];
}

type Pick = (full: number, short: number) => number;

function floorScenarios(pick: Pick): PlainScenario[] {
  const floor = { ...PLAIN, driver: 'floor' } as const;
  return [
    {
      ...{ ...floor, ratePerSecond: 200, name: 'floor-200' },
      about: 'insert a row, POST, update the row: 200 per second',
      count: 200 * pick(15, 3),
    },
    {
      ...{ ...floor, ratePerSecond: null, name: 'floor' },
      about: 'insert a row, POST, update the row: as fast as it goes',
      count: pick(20_000, 4_000),
    },
  ];
}

function alwaysScenarios(pick: Pick): PlainScenario[] {
  const always = { ...PLAIN, deliveryWorkflows: 'always' } as const;
  return [
    {
      ...{ ...always, ratePerSecond: 10, name: 'always-10' },
      about: 'one workflow per delivery, 10 messages per second',
      count: 10 * pick(20, 3),
    },
    {
      ...{ ...always, ratePerSecond: null, name: 'always-flood' },
      about: 'one workflow per delivery: its ceiling',
      count: pick(600, 100),
    },
  ];
}
