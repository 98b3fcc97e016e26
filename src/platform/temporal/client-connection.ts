import { readFileSync } from 'node:fs';
import type { Client, Connection, TLSConfig } from '@temporalio/client';
import type { Config } from '../config/config.ts';

export type TemporalConnection = {
  /** Does something with a client, for at most `withinMs`; rejects when Temporal is away or refuses. */
  use<Result>(withinMs: number, work: (client: Client) => Promise<Result>): Promise<Result>;
  close(): Promise<void>;
};

export type TemporalServer = Pick<Config['temporal'], 'address' | 'tls' | 'apiKey'>;

/** What client and worker connect with. The files were checked at the start; throws when one is gone since. */
export function serverOptions({ address, tls, apiKey }: TemporalServer) {
  return {
    address,
    tls: tls === null ? null : tlsOptions(tls),
    ...(apiKey !== '' && { apiKey }),
  };
}

function tlsOptions({
  caFile,
  certFile,
  keyFile,
  serverName,
}: NonNullable<TemporalServer['tls']>): TLSConfig {
  return {
    ...(caFile !== '' && { serverRootCACertificate: readFileSync(caFile) }),
    ...(certFile !== '' && { clientCertPair: { crt: readFileSync(certFile), key: readFileSync(keyFile) } }),
    ...(serverName !== '' && { serverNameOverride: serverName }),
  };
}

/**
 * Opens the connection when it is first used, and loads the client only then: that takes half a second, and few
 * requests need it. Temporal need not be there: each use tries again.
 */
export function openTemporalConnection({ temporal }: Pick<Config, 'temporal'>): TemporalConnection {
  const { namespace } = temporal;
  let opened: Promise<{ client: Client; connection: Connection }> | null = null;
  const running = new Set<Promise<unknown>>();
  const open = async () => {
    const module = await import('@temporalio/client');
    const connection = module.Connection.lazy({
      ...serverOptions(temporal),
      // gRPC configurations are not kept in DNS, and where DNS does not answer, asking for it takes 20 seconds.
      channelArgs: { 'grpc.service_config_disable_resolution': 1 },
    });
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
    // A call that is tried again on a closed connection would throw where it cannot be caught.
    close: async () => {
      await Promise.all(running);
      await (await opened?.catch(() => null))?.connection.close();
    },
  };
}

function ignore(): void {}

export function workflowListUrl(
  { uiUrl, namespace }: { uiUrl: string; namespace: string },
  listQuery: string,
): string {
  return `${uiUrl}/namespaces/${encodeURIComponent(namespace)}/workflows?query=${encodeURIComponent(listQuery)}`;
}

/** The workflow that carried a delivery, as its row has it: that of a delivery loop runs again now and then, so its run stands behind it. */
const SESSION_RUN = /^(delivery-session\/.+)\/([0-9a-f-]{36})$/;

export function workflowUrl(
  { uiUrl, namespace }: { uiUrl: string; namespace: string },
  workflowId: string,
): string {
  const [, id = workflowId, runId] = SESSION_RUN.exec(workflowId) ?? [];
  const url = `${uiUrl}/namespaces/${encodeURIComponent(namespace)}/workflows/${encodeURIComponent(id)}`;
  return runId === undefined ? url : `${url}/${runId}`;
}
