import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { append, containersOf, type Installation, prepareInstallation } from './installation.ts';

const SERVERS = ['postgres', 'temporal', 'object-store'];

/**
 * An installation of profile `external`, not started yet, set up by the documents: its database, Temporal and object store
 * are those of `first`, under names and in a network that are not Compose's own. The platform and the tenant are first's.
 */
export async function prepareExternal(first: Installation): Promise<Installation> {
  for (const service of SERVERS) {
    const [container = ''] = await containersOf(first, service);
    const network = 'heliograph-stack_outbound';
    await first.run('docker', [
      'network',
      'connect',
      '--alias',
      `${service}.servers.test`,
      network,
      container,
    ]);
  }
  const second = await prepareInstallation({
    project: 'heliograph-external',
    subnet: '10.214.69.0/24',
    overlay: 'test/stack/external.yml',
  });
  for (const file of ['secrets/encryption-keys', 'secrets/object-store-secret-key', 'tls/peer.pem'])
    copyFileSync(join(first.folder, file), join(second.folder, file));
  for (const file of ['secrets/database-url', 'secrets/owner-database-url']) {
    const url = readFileSync(join(first.folder, file), 'utf8');
    writeFileSync(join(second.folder, file), url.replace('@postgres:', '@postgres.servers.test:'));
  }
  const image = readFileSync(join(first.folder, '.env'), 'utf8')
    .match(/^SERVICE_IMAGE=.*$/gm)
    ?.at(-1);
  append(join(second.folder, '.env'), {
    COMPOSE_PROFILES: 'external',
    SERVICE_IMAGE: image?.replace('SERVICE_IMAGE=', '') ?? '',
  });
  append(join(second.folder, 'heliograph.env'), {
    HELIOGRAPH_TEMPORAL_ADDRESS: 'temporal.servers.test:7233',
    HELIOGRAPH_OBJECT_STORE_URL: 'http://object-store.servers.test:7070',
  });
  return { ...second, peerUrl: first.peerUrl };
}
