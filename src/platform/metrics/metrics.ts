import { Counter, collectDefaultMetrics, Gauge, type Registry } from '@prometheus-io/client';
import packageJson from '../../../package.json' with { type: 'json' };

/** An event as traces know it (docs/decisions/0035). */
export type TracedEvent = { wabaId: string; type?: string; eventId: string; uuid?: string };

/** Something that was done; times in milliseconds since 1970. */
export type SpanNote = {
  name: string;
  /** The events that it was done for, or the upstream body with them. None: those of its activity. */
  about: readonly TracedEvent[] | Buffer;
  startMs: number;
  endMs: number;
  attributes?: Readonly<Record<string, string | number | boolean | null | undefined>>;
  failed?: string | undefined;
};

export type ActivityRun = { type: string; workflow: string; workflow_id: string; attempt: number };

type Tracing = {
  note: ((span: SpanNote) => void) | null;
  inActivity: (<Result>(run: ActivityRun, work: () => Promise<Result>) => Promise<Result>) | null;
};

/** Where parts of the path of a message tell what they did. Nothing listens, and nothing is made, unless traces are switched on. */
export const tracing: Tracing = { note: null, inActivity: null };

/** The finest would wake the process a hundred times a second for nothing but this. */
const EVENT_LOOP_EVERY_MS = 50;
const UTILIZATION_EVERY_MS = 1_000;

/**
 * From now on the registry also tells of this process: processor time, memory, event loop, collections, version. Its
 * timers run until the process ends and keep it from ending no longer, so call it once, where metrics are served.
 */
export function watchProcess(registry: Registry): void {
  collectDefaultMetrics({
    register: registry,
    eventLoopMonitoringPrecision: EVENT_LOOP_EVERY_MS,
    eventLoopUtilizationTimeout: UTILIZATION_EVERY_MS,
  });
  const build = new Gauge({
    name: 'heliograph_build_info',
    help: 'Always 1; the label says which version runs.',
    labelNames: ['version'],
    registers: [registry],
  });
  build.set({ version: packageJson.version }, 1);
}

export type CountOutcome<Outcome extends string> = (outcome: Outcome) => void;

/**
 * A counter with the label `outcome`, which has these values and no other. All are there from the start with 0:
 * a series that begins with its first failure has no increase to alert on.
 */
export function makeOutcomeCounter<Outcome extends string>(
  registry: Registry,
  metric: { name: string; help: string; outcomes: readonly Outcome[] },
): CountOutcome<Outcome> {
  const { name, help, outcomes } = metric;
  const counter = new Counter({ name, help, labelNames: ['outcome'], registers: [registry] });
  const children = new Map(outcomes.map((outcome) => [outcome, counter.labels(outcome)]));
  for (const child of children.values()) child.inc(0);
  return (outcome) => children.get(outcome)?.inc();
}

/** The same activity with each run counted by its outcome; one that throws is run again and counts as `retrying`. */
export function counted<Args extends unknown[], Result extends { outcome: string }>(
  run: (...args: Args) => Promise<Result>,
  count: CountOutcome<Result['outcome'] | 'retrying'>,
): (...args: Args) => Promise<Result> {
  return async (...args) => {
    try {
      const result = await run(...args);
      count(result.outcome);
      return result;
    } catch (error) {
      count('retrying');
      throw error;
    }
  };
}
