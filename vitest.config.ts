import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Files side by side: most of the time they wait for servers. The files of a process share the packages, which take a
 * second to load; our own modules are loaded again for each file.
 */
const SIDE_BY_SIDE = { maxWorkers: 5, isolate: false, sequence: { groupOrder: 0 } };

/** Tests that compare times or fill the machine have it for themselves. */
const TIMED = [
  'test/integration/deliveries/{unrecordable,dead-endpoint,hanging-endpoints,kill-worker,many-endpoints,delivery-loop,retry-storm}.test.ts',
  'test/integration/inbound/neighbours.test.ts',
  'test/integration/portal/deliveries/page-times.test.ts',
  'test/integration/messages/send/kill-processes.test.ts',
  'test/integration/deployment/proxy-load.test.ts',
  'test/integration/messages/media/slow-readers.test.ts',
];

/** They render the chart with helm, which takes minutes to build. */
const CHART = ['test/unit/deployment/chart*.test.ts'];
const PODS = ['test/integration/deployment/pods.test.ts'];

/** They kill and freeze parts of the product again and again. */
const DRILLS = ['test/acceptance/{drill,outage}.test.ts'];

const ACCEPTANCE = {
  globalSetup: ['test/acceptance/support/stack-setup.ts'],
  fileParallelism: false,
  isolate: false,
  testTimeout: 120_000,
  hookTimeout: 240_000,
};

/** They wait for minutes, for a build or for Temporal, and are short: by their size they would be begun at the end. */
const WAITING =
  /\/test\/integration\/(deployment\/proxy-downloads|worker\/deaf-worker|deliveries\/session-workflow|docs\/docs-site)\.test\.ts$/;

/** Begins with the files that wait, so that others run beside them. */
class WaitingFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { waiting = [], others = [] } = Object.groupBy(await super.sort(files), ({ moduleId }) =>
      WAITING.test(moduleId) ? 'waiting' : 'others',
    );
    return [...waiting, ...others];
  }
}

const INTEGRATION = {
  globalSetup: ['test/support/infrastructure-setup.ts'],
  setupFiles: ['test/support/temporal-runtime.ts'],
  testTimeout: 60_000,
  hookTimeout: 60_000,
};

/**
 * `npm test`: rules without servers, parts on real servers, and the whole product over HTTP. `npm run test:long`: what
 * needs the machine for itself, the drills, and the chart.
 */
export default defineConfig({
  test: {
    pool: 'forks',
    sequence: { sequencer: WaitingFirst },
    projects: [
      {
        test: {
          ...SIDE_BY_SIDE,
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          exclude: CHART,
          testTimeout: 20_000,
        },
      },
      {
        test: {
          ...SIDE_BY_SIDE,
          name: 'chart',
          include: CHART,
          testTimeout: 20_000,
        },
      },
      {
        test: {
          ...INTEGRATION,
          ...SIDE_BY_SIDE,
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          exclude: [...TIMED, ...PODS],
        },
      },
      {
        test: {
          ...INTEGRATION,
          name: 'timed',
          include: [...TIMED, ...PODS],
          fileParallelism: false,
          isolate: false,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...ACCEPTANCE,
          name: 'acceptance',
          include: ['test/acceptance/**/*.test.ts'],
          exclude: DRILLS,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          ...ACCEPTANCE,
          name: 'drills',
          include: DRILLS,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
