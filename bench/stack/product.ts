import { join } from 'node:path';
import { findFreePorts } from '../../dev/embedded/ports.ts';
import type { BenchPart } from './bench-part.ts';
import { type ControlGroup, makeControlGroup } from './control-group.ts';
import { type ProcessName, startHeliographProcess } from './heliograph-process.ts';

/** How the product is run. */
export type ProductLayout = {
  deliveryWorkflows: 'auto' | 'always';
  /** Worker processes. */
  workers: number;
  /** Most CPU of each worker, in cores; null: what there is. */
  coresPerWorker: number | null;
  /** The share of the messages that are traced. */
  tracesPercent: 0 | 10 | 100;
};

/** API and worker as processes of their own, or the first worker in the process of the API (`heliograph-server all`). */
export type Processes = 'one' | 'two';

export type ProductOptions = {
  processes: Processes;
  /** Where traces go if there are any. */
  tracesUrl: string;
  settings: Readonly<Record<string, string>>;
  /** The directory of the product; null: this one. */
  checkout: string | null;
  apiPort: number;
  logDir: string;
  nodeArguments: readonly string[];
  onCrash: (error: Error) => void;
};

/** The processes of the product that run now, in the order of their start. */
export type Product = { pids: Record<string, number[]>; stop(): Promise<void> };

type Part = { kind: string; process: BenchPart; group: ControlGroup | null };

/** Starts API and workers and waits until they are ready. */
export async function startProduct(given: ProductOptions, layout: ProductLayout): Promise<Product> {
  const parts: Part[] = [];
  const stop = async () => {
    for (const { process, group } of parts.splice(0).reverse()) {
      await process.stop();
      group?.remove();
    }
  };
  try {
    const options = withTraces(given, layout);
    const healthPorts = await findFreePorts(layout.workers);
    for (const [index, healthPort] of healthPorts.entries()) {
      const isFirst = index === 0;
      const name = isFirst && options.processes === 'one' ? 'all' : 'worker';
      parts.push(await startWorker(options, layout, { name, index, healthPort }));
    }
    if (options.processes === 'two') parts.push(await startApi(options));
  } catch (error) {
    await stop();
    throw error;
  }
  const pids: Record<string, number[]> = {};
  for (const { kind, process } of parts) pids[kind] = [...(pids[kind] ?? []), process.pid];
  return { pids, stop };
}

function withTraces(options: ProductOptions, { tracesPercent }: ProductLayout): ProductOptions {
  if (tracesPercent === 0) return options;
  const traces = {
    HELIOGRAPH_TRACES_URL: options.tracesUrl,
    HELIOGRAPH_TRACES_PERCENT: String(tracesPercent),
  };
  return { ...options, settings: { ...options.settings, ...traces } };
}

async function startApi(options: ProductOptions): Promise<Part> {
  const process = await start(options, { name: 'api', index: 0, settings: {}, ports: [options.apiPort] });
  return { kind: 'api', process, group: null };
}

async function startWorker(
  options: ProductOptions,
  { deliveryWorkflows, coresPerWorker }: ProductLayout,
  { name, index, healthPort }: { name: ProcessName; index: number; healthPort: number },
): Promise<Part> {
  const group = coresPerWorker === null ? null : makeControlGroup(`heliograph-bench-${healthPort}`);
  group?.limitCores(coresPerWorker);
  const settings = {
    HELIOGRAPH_WORKER_HEALTH_PORT: String(healthPort),
    HELIOGRAPH_DELIVERY_WORKFLOWS: deliveryWorkflows,
  };
  try {
    const ports = name === 'all' ? [healthPort, options.apiPort] : [healthPort];
    const process = await start(options, { name, index, settings, ports });
    group?.add(process.pid);
    return { kind: name, process, group };
  } catch (error) {
    group?.remove();
    throw error;
  }
}

function start(
  { settings, checkout, logDir, nodeArguments, onCrash }: ProductOptions,
  own: { name: ProcessName; index: number; settings: Record<string, string>; ports: number[] },
): Promise<BenchPart> {
  return startHeliographProcess({
    name: own.name,
    settings: { ...settings, ...own.settings },
    ports: own.ports,
    checkout,
    nodeArguments,
    onCrash,
    logFile: join(logDir, `${own.name}-${own.index}.log`),
  });
}
