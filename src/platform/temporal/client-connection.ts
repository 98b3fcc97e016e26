import type { Client, Connection } from '@temporalio/client';
import type { Config } from '../config/config.ts';

/** One connection to Temporal for a process that runs no worker. */
export type TemporalConnection = {
  /** Does something with a client, for at most `withinMs`; rejects when Temporal is away or refuses. */
  use<Result>(withinMs: number, work: (client: Client) => Promise<Result>): Promise<Result>;
  close(): Promise<void>;
};

/**
 * Opens the connection when it is first used, and loads the client only then: that takes half a second, and few
 * requests need it. Temporal need not be there: each use tries again.
 */
export function openTemporalConnection({ temporal }: Pick<Config, 'temporal'>): TemporalConnection {
  const { address, namespace } = temporal;
  let opened: Promise<{ client: Client; connection: Connection }> | null = null;
  const running = new Set<Promise<unknown>>();
  const open = async () => {
    const module = await import('@temporalio/client');
    const connection = module.Connection.lazy({ address });
    return { connection, client: new module.Client({ connection, namespace }) };
  };
  return {
    use: async (withinMs, work) => {
      opened ??= open();
      const { client, connection } = await opened;
      const result = connection.withDeadline(Date.now() + withinMs, () => work(client));
      const ended: Promise<unknown> = result.then(ignore, ignore).then(() => running.delete(ended));
      running.add(ended);
      return await result;
    },
    // A call that is tried again on a closed connection would throw where nobody can catch it.
    close: async () => {
      await Promise.all(running);
      await (await opened?.catch(() => null))?.connection.close();
    },
  };
}

function ignore(): void {}
