import type { BadEndpointsProtocol } from './bad-endpoints-process.ts';
import { type Child, type Protocol, startChild } from './child-process.ts';
import type { DriverProtocol } from './driver-process.ts';
import type { FloorProtocol } from './floor-process.ts';
import type { ReceiverProtocol } from './receiver-process.ts';
import { type SeededTarget, seedTargets } from './stack/seed.ts';
import type { Stack } from './stack/stack.ts';

/** The benchmark's own processes, and where their webhooks and bodies go. */
export type BenchProcesses = {
  receiver: Child<ReceiverProtocol>;
  receiverUrl: string;
  driver: Child<DriverProtocol>;
  floor: Child<FloorProtocol>;
  targets: Record<1 | 100, SeededTarget[]>;
  badTargets: SeededTarget[];
  stop(): Promise<void>;
};

const MANY = 100;

/** Starts receiver, driver, floor and bad endpoints, each as a process, and gives each endpoint a WABA. */
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
    const driver = start<DriverProtocol>('./driver-process.ts');
    const floor = start<FloorProtocol>('./floor-process.ts');
    const ports = await receiver.ask('listen', 1 + MANY);
    const urls = ports.map((port) => `http://127.0.0.1:${port}`);
    const good = await seedTargets(stack, 1, urls);
    const badTargets = await seedTargets(stack, 1 + urls.length, await bad.ask('listen', null));
    const targets = { 1: good.slice(0, 1), 100: good.slice(1) };
    return { receiver, receiverUrl: urls[0] ?? '', driver, floor, targets, badTargets, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
