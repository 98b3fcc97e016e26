import type { TemporalConnection } from '../../src/platform/temporal/client-connection.ts';

/** As with a Temporal that cannot be reached, but at once: the real connection tries for seconds. */
export const TEMPORAL_AWAY: TemporalConnection = {
  use: async () => {
    throw new Error('Temporal is away');
  },
  close: async () => undefined,
};
