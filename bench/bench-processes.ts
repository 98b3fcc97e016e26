import type { BadEndpointsProtocol } from './bad-endpoints-process.ts';
import { type Child, type Protocol, startChild } from './child-process.ts';
import type { DriverProtocol } from './driver-process.ts';
import type { FloorProtocol } from './floor-process.ts';
import { type Peer, startPeer } from './peers/peers.ts';
import type { Manner, ReceiverProtocol } from './receiver-process.ts';
import type { Destination, PeerName } from './scenarios.ts';
import { type SeededTarget, seedTargets, seedWideTarget } from './stack/seed.ts';
import type { Stack } from './stack/stack.ts';

/** The benchmark's own processes, and where their webhooks and bodies go. */
export type BenchProcesses = {
  receiver: Child<ReceiverProtocol>;
  receiverUrl: string;
  driver: Child<DriverProtocol>;
  /** Sends what else comes in while a scenario is measured. */
  noiseDriver: Child<DriverProtocol>;
  floor: Child<FloorProtocol>;
  targets: Record<Destination, SeededTarget[]>;
  /** Those of the one WABA of `wide`. */
  wideEndpointIds: string[];
  /** A peer, started when it is asked for first. */
  peer(name: PeerName): Promise<Peer>;
  stop(): Promise<void>;
};

const WIDE_ENDPOINTS = 100;

const MANNERS: [Exclude<Destination, 'bad' | 'wide'>, Manner, number][] = [
  ['one', 'takes', 1],
  ['another', 'takes', 1],
  ['hundred', 'takes', 100],
  ['slow', 'takes a second', 1],
  ['fails-first', 'refuses the first', 1],
  ['fails-often', 'refuses 60 %', 1],
];

/** Starts receiver, drivers, floor and bad endpoints, each as a process, and gives each endpoint a WABA. */
export async function startBenchProcesses(
  stack: Stack,
  onCrash: (error: Error) => void,
): Promise<BenchProcesses> {
  const children: { stop(): Promise<void> }[] = [];
  const start = <P extends Protocol>(script: string): Child<P> => {
    const child = startChild<P>(new URL(script, import.meta.url), onCrash);
    children.push(child);
    return child;
  };
  const stop = async () => {
    await Promise.all(children.map((child) => child.stop()));
  };
  try {
    const receiver = start<ReceiverProtocol>('./receiver-process.ts');
    const bad = start<BadEndpointsProtocol>('./bad-endpoints-process.ts');
    const drivers = [
      start<DriverProtocol>('./driver-process.ts'),
      start<DriverProtocol>('./driver-process.ts'),
    ] as const;
    const floor = start<FloorProtocol>('./floor-process.ts');
    const { urls, wideUrls, targets } = await seedReceiver(stack, receiver);
    targets.bad = await seedTargets(stack, 1 + urls.length, await bad.ask('listen', null));
    const wide = await seedWideTarget(stack, 1 + urls.length + targets.bad.length, wideUrls);
    targets.wide = [wide.target];
    const [driver, noiseDriver] = drivers;
    const receiverUrl = urls[0] ?? '';
    const peers = new Map<PeerName, Promise<Peer>>();
    const peer = (name: PeerName) => {
      const started = peers.get(name) ?? startPeer(name, stack, receiverUrl, onCrash);
      if (!peers.has(name)) children.push({ stop: async () => (await started.catch(() => null))?.stop() });
      peers.set(name, started);
      return started;
    };
    const { endpointIds: wideEndpointIds } = wide;
    return { receiver, receiverUrl, driver, noiseDriver, floor, targets, wideEndpointIds, peer, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function seedReceiver(stack: Stack, receiver: Child<ReceiverProtocol>) {
  const manners = MANNERS.flatMap(([, manner, count]) => Array<Manner>(count).fill(manner));
  const wide = Array<Manner>(WIDE_ENDPOINTS).fill('takes');
  const ports = await receiver.ask('listen', { manners: [...manners, ...wide] });
  const all = ports.map((port) => `http://127.0.0.1:${port}`);
  const [urls, wideUrls] = [all.slice(0, manners.length), all.slice(manners.length)];
  const seeded = await seedTargets(stack, 1, urls);
  const none: SeededTarget[] = [];
  const targets: Record<Destination, SeededTarget[]> = {
    one: none,
    another: none,
    hundred: none,
    wide: none,
    slow: none,
    bad: none,
    'fails-first': none,
    'fails-often': none,
  };
  for (const [to, , count] of MANNERS) targets[to] = seeded.splice(0, count);
  return { urls, wideUrls, targets };
}
