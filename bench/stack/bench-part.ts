import {
  describeExit,
  type PartDefinition,
  type PartProcess,
  startPartProcess,
} from '../../dev/embedded/process-part.ts';

const READY_TIMEOUT_MS = 60_000;

export type BenchPart = { pid: number; stop(): Promise<void> };

/** Runs a program and waits until it is ready; `onCrash` hears when it ends unasked later. */
export async function startBenchPart(
  definition: PartDefinition,
  onCrash: (error: Error) => void,
): Promise<BenchPart> {
  let stopping = false;
  const part = startPartProcess(definition);
  const stop = async () => {
    stopping = true;
    await part.stop();
  };
  try {
    await untilReady(definition, part);
  } catch (error) {
    await stop();
    throw error;
  }
  void part.exited.then((exit) => {
    if (!stopping) onCrash(new Error(`${definition.name} ended: ${describeExit(exit)}\n${lastLines(part)}`));
  });
  return { pid: part.pid ?? 0, stop };
}

async function untilReady({ name, isReady }: PartDefinition, part: PartProcess): Promise<void> {
  const deadline = performance.now() + READY_TIMEOUT_MS;
  while (!(await isReady())) {
    if (part.hasExited()) throw new Error(`${name} did not start:\n${lastLines(part)}`);
    if (performance.now() > deadline) throw new Error(`${name} is not ready in time:\n${lastLines(part)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function lastLines(part: PartProcess): string {
  return part.lastLines().slice(-8).join('\n');
}
