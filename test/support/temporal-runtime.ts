import { IllegalStateError } from '@temporalio/common';
import { installTemporalRuntime } from '../../src/platform/temporal/worker-connection.ts';
import { silentLogger } from './silent-logger.ts';

/** Temporal has one runtime per process, which the test files of a process share: only the first can install it. */
try {
  installTemporalRuntime(silentLogger);
} catch (error) {
  if (!(error instanceof IllegalStateError)) throw error;
}
