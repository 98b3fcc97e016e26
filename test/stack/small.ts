import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fetchMedia, firstMedia, sendText, verifySignatures } from './checks.ts';
import { killContainer } from './docker.ts';
import {
  append,
  authorityOf,
  containersOf,
  type Installation,
  prepareInstallation,
  untilHealthy,
} from './installation.ts';
import { lossesIn, startPump } from './pump.ts';
import { ACCOUNT, addTenant, drained, say, WELL_WITHIN_MS } from './traffic.ts';

const SERVICES = ['api', 'proxy', 'temporal', 'object-store', 'postgres'];
const MEMORY_BYTES = 2 * 1_024 ** 3;

/** docker-compose.small.yml on empty volumes: messages, files and sends, while each of its containers is killed once. */
export async function testSmall(): Promise<number> {
  say('docker-compose.small.yml on empty volumes');
  const installation = await prepareInstallation({
    project: 'heliograph-small',
    subnet: '10.214.70.0/24',
    file: 'docker-compose.small.yml',
    overlay: 'test/stack/small.yml',
  });
  append(join(installation.folder, '.env'), { SERVICE_IMAGE: 'heliograph:0-stack-small' });
  try {
    await installation.compose('build');
    await installation.compose('up', '-d');
    await untilHealthy(installation, WELL_WITHIN_MS);
    await exercise(installation);
    await checkMemory(installation);
    return 0;
  } catch (error) {
    say(error instanceof Error ? error.message : String(error));
    writeFileSync('stack-test-small.log', await installation.compose('logs', '--no-color', '--timestamps'));
    return 1;
  } finally {
    await installation.remove();
  }
}

async function exercise(installation: Installation): Promise<void> {
  const { secret, apiKey } = await addTenant(installation);
  const ca = await authorityOf(installation);
  const pump = startPump({ port: installation.httpsPort, ca, account: ACCOUNT, senders: 3, pauseMs: 200 });
  await sleep(5_000);
  try {
    for (const service of SERVICES)
      for (const container of await containersOf(installation, service)) {
        say(`kill -9 ${container}`);
        await killContainer(installation.run, container);
        await sleep(1_000);
        await untilHealthy(installation, WELL_WITHIN_MS);
        await sleep(2_000);
      }
  } finally {
    await pump.stop();
  }
  const arrivals = await drained(installation, pump);
  verifySignatures(arrivals, secret);
  const { lost, disordered } = lossesIn(pump.acknowledged, arrivals);
  if (lost.length + disordered.length > 0)
    throw new Error(`lost or out of order: ${[...lost, ...disordered].slice(0, 20)}`);
  say(`${pump.acknowledged.length} events arrived, none lost or out of order`);
  const media = firstMedia(arrivals);
  if (media === null) throw new Error('no file was announced');
  const file = await fetchMedia(installation.httpsPort, ca, media.url);
  if (file.status !== 200 || !file.text.startsWith('fixture-media:'))
    throw new Error(`the file is not there: ${file.status}`);
  const { status, text } = await sendText(installation.httpsPort, ca, apiKey, 'once');
  if (status > 299) throw new Error(`the message was not taken: ${status} ${text}`);
  const sends = async () => (await (await fetch(`${installation.peerUrl}/sends`)).json()) as string[];
  for (const deadline = Date.now() + WELL_WITHIN_MS; (await sends()).length === 0; ) {
    if (Date.now() > deadline) throw new Error('the message did not go out');
    await sleep(500);
  }
}

/** What the containers use now, and that their limits are 2 GB in all. */
async function checkMemory(installation: Installation): Promise<void> {
  let limits = 0;
  for (const service of SERVICES) {
    const [container = ''] = await containersOf(installation, service);
    limits += Number(
      await installation.run('docker', ['inspect', '--format', '{{.HostConfig.Memory}}', container]),
    );
    const used = await installation.run('docker', [
      'stats',
      '--no-stream',
      '--format',
      '{{.Name}} {{.MemUsage}}',
      container,
    ]);
    say(used.trim());
  }
  if (limits === 0 || limits > MEMORY_BYTES) throw new Error(`the limits are ${limits} bytes in all`);
}
