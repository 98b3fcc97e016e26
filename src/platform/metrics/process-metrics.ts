import { collectDefaultMetrics, Gauge, type Registry } from '@prometheus-io/client';
import packageJson from '../../../package.json' with { type: 'json' };

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
