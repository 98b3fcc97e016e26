import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Files side by side: most of the time they wait for servers. The files of a process share the packages, which take a
 * second to load; our own modules are loaded again for each file.
 */
const SIDE_BY_SIDE = { maxWorkers: 5, isolate: false, sequence: { groupOrder: 0 } };

/** Tests that compare times or fill the machine have it for themselves. */
const TIMED = [
  'test/integration/deliveries/{isolation,unrecordable,dead-endpoint,hanging-endpoints,kill-worker,many-endpoints,order-scope-load,delivery-loop,retry-storm}.test.ts',
  'test/integration/inbound/neighbours.test.ts',
  'test/integration/portal/deliveries/page-times.test.ts',
  'test/integration/messages/send/kill-processes.test.ts',
  'test/integration/deployment/proxy-load.test.ts',
  'test/integration/messages/media/slow-readers.test.ts',
];

/** They wait for minutes, for a build or for Temporal, and are short: by their size they would be begun at the end. */
const WAITING =
  /\/test\/integration\/(deployment\/proxy-downloads|worker\/deaf-worker|deliveries\/session-workflow)\.test\.ts$/;

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

/** Rules without servers, parts on real servers (some of them alone), and the whole product over HTTP. */
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
          testTimeout: 20_000,
        },
      },
      {
        test: {
          ...INTEGRATION,
          ...SIDE_BY_SIDE,
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          exclude: TIMED,
        },
      },
      {
        test: {
          ...INTEGRATION,
          name: 'timed',
          include: TIMED,
          fileParallelism: false,
          isolate: false,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: 'acceptance',
          include: ['test/acceptance/**/*.test.ts'],
          globalSetup: ['test/acceptance/support/stack-setup.ts'],
          fileParallelism: false,
          sequence: { groupOrder: 2 },
          testTimeout: 120_000,
          hookTimeout: 240_000,
        },
      },
    ],
  },
});
