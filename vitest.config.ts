import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * The files of a process share the packages, which take a second to load. Our own modules are loaded again for each file,
 * but for those of the chart, which keep what helm has rendered.
 */
const FRESH = 'test/support/fresh-modules.ts';

/** What a test leaves is mostly dead before a young generation of this size is full: half as many collections copy it. */
const YOUNG_SPACE = ['--min-semi-space-size=64', '--max-semi-space-size=64'];

/** Files side by side: most of the time they wait for servers. */
const SIDE_BY_SIDE = { maxWorkers: 5, isolate: false, execArgv: YOUNG_SPACE, sequence: { groupOrder: 0 } };

/** A test waits for a cause, and goes on when it is there: its limit serves a machine at a quarter of this one's speed. */
const PATIENT = { testTimeout: 300_000, hookTimeout: 300_000 };

/** Tests that compare times or fill the machine have it for themselves. */
const TIMED = [
  'test/integration/api/provisioning/hook-beside-failing.test.ts',
  'test/integration/deliveries/{dead-endpoint,hanging-endpoints,many-endpoints,delivery-loop,loop-pace,retry-storm}.test.ts',
  'test/integration/ingest/neighbours.test.ts',
  'test/integration/portal/deliveries/page-times.test.ts',
  'test/integration/deployment/proxy-load.test.ts',
  'test/integration/messages/media/slow-readers.test.ts',
];

/** They take minutes, and hold whatever else the machine does: rows that are read, CPU of the process, processes that are killed. */
const LONG = [
  'test/integration/**/*-plans.test.ts',
  'test/integration/api/{body-costs,long-values}.test.ts',
  'test/integration/platform/long-responses.test.ts',
  'test/integration/deliveries/{unrecordable,kill-worker}.test.ts',
  'test/integration/messages/send/kill-processes.test.ts',
  'test/integration/messages/broadcasts/broadcast-{drill,kills}.test.ts',
];

/** They render the chart with helm, which takes minutes to build. */
const CHART = ['test/unit/deployment/chart*.test.ts'];
const PODS = ['test/integration/deployment/pods.test.ts'];

/** They kill and freeze parts of the product again and again, or send it thousands of requests. */
const DRILLS = ['test/acceptance/{drill,outage,schemathesis}.test.ts'];

const ACCEPTANCE = {
  globalSetup: ['test/acceptance/support/stack-setup.ts'],
  setupFiles: [FRESH],
  fileParallelism: false,
  isolate: false,
  ...PATIENT,
};

/** They wait for a minute or longer, mostly for Temporal or a build, and hardly use the processors. */
const WAITING = new RegExp(
  `/test/integration/(${[
    'deployment/proxy-downloads',
    'docs/docs-site',
    'deliveries/(backlog-return|backlog-return-causes|dead-workers|session-workflow|stuck-workflow|workflow-ids)',
    'deliveries/temporal-(away|frozen)',
    'platform/temporal/connection',
    'worker/(deaf-worker|idle-transactions)',
  ].join('|')})\\.test\\.ts$`,
);

/** So many other files begin between two that wait. */
const BETWEEN = 8;

/**
 * Begins early with the files that wait: at the end nothing would be left to run beside them. One after the other, because
 * a few at a time are enough to keep the processors idle.
 */
class WaitingEarly extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { waiting = [], others = [] } = Object.groupBy(await super.sort(files), ({ moduleId }) =>
      WAITING.test(moduleId) ? 'waiting' : 'others',
    );
    const spread = waiting.flatMap((file, n) => [file, ...others.slice(n * BETWEEN, (n + 1) * BETWEEN)]);
    return [...spread, ...others.slice(waiting.length * BETWEEN)];
  }
}

const INTEGRATION = {
  globalSetup: ['test/support/infrastructure-setup.ts'],
  setupFiles: [FRESH, 'test/support/temporal-runtime.ts'],
  ...PATIENT,
};

/**
 * `npm test`: rules without servers, parts on real servers, and the whole product over HTTP. `npm run test:long`: what
 * needs the machine for itself, the drills, and the chart.
 */
export default defineConfig({
  test: {
    pool: 'forks',
    expect: { poll: { timeout: 120_000, interval: 20 } },
    sequence: { sequencer: WaitingEarly },
    projects: [
      {
        test: {
          ...SIDE_BY_SIDE,
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          exclude: CHART,
          setupFiles: [FRESH],
          ...PATIENT,
        },
      },
      {
        test: {
          ...SIDE_BY_SIDE,
          name: 'chart',
          include: CHART,
          ...PATIENT,
        },
      },
      {
        test: {
          ...INTEGRATION,
          ...SIDE_BY_SIDE,
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          exclude: [...LONG, ...TIMED, ...PODS],
        },
      },
      {
        test: {
          ...INTEGRATION,
          name: 'long',
          include: LONG,
          maxWorkers: 2,
          isolate: false,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...INTEGRATION,
          name: 'timed',
          include: [...TIMED, ...PODS],
          fileParallelism: false,
          isolate: false,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          ...ACCEPTANCE,
          name: 'acceptance',
          include: ['test/acceptance/**/*.test.ts'],
          exclude: DRILLS,
          sequence: { groupOrder: 3 },
        },
      },
      {
        test: {
          ...ACCEPTANCE,
          name: 'drills',
          include: DRILLS,
          sequence: { groupOrder: 4 },
        },
      },
    ],
  },
});
