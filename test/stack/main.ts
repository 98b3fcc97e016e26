import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { checkMonitoring, fetchMedia, firstMedia, sendText, verifySignatures } from './checks.ts';
import { killContainer, whyNot } from './docker.ts';
import { prepareExternal } from './external.ts';
import {
  addMigration,
  append,
  authorityOf,
  containersOf,
  type Installation,
  prepareInstallation,
  untilHealthy,
} from './installation.ts';
import type { Arrival } from './peer.ts';
import { lossesIn, type Pump, startPump } from './pump.ts';
import { testSmall } from './small.ts';
import { ACCOUNT, addTenant, drained, say, sendMore, WABA, WELL_WITHIN_MS } from './traffic.ts';

const HELP = `The stack of docker-compose.yml, really started: builds the image, brings everything up on empty volumes as
docs/operators/operations.md says, sends signed bodies through the proxy, and meanwhile restarts, kills, upgrades, backs up
and restores; then an installation of profile external takes over. Nothing acknowledged may be lost or out of order, and
upstream may get no answer but 200, except while PostgreSQL itself is down. At last docker-compose.small.yml is tried.

  npm run test:stack -- [options]

  --full     every disturbance three times; at the end MinIO in place of the bundled object store
  --small    docker-compose.small.yml alone
  --keep     leave it running, and say where
  --help

Needs Docker with Compose; says so and ends with code 0 where there is none. Ports are free ones of this machine.
`;

const SERVICES = ['api', 'worker', 'proxy', 'temporal', 'temporal-ui', 'object-store', 'postgres'];

// After an error the senders still run.
process.exit(await main());

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      full: { type: 'boolean' },
      small: { type: 'boolean' },
      keep: { type: 'boolean' },
      help: { type: 'boolean' },
    },
  });
  if (values.help === true) {
    process.stdout.write(HELP);
    return 0;
  }
  const reason = whyNot();
  if (reason !== null) {
    process.stdout.write(`The stack is not tested: ${reason}.\n`);
    return 0;
  }
  if (values.small === true) return await testSmall();
  const installation = await prepareInstallation();
  process.once('SIGINT', () => {
    void installation.remove().finally(() => process.exit(130));
  });
  try {
    return await testStack(installation, values.full === true ? 3 : 1);
  } catch (error) {
    say(error instanceof Error ? error.message : String(error));
    writeFileSync('stack-test.log', await installation.compose('logs', '--no-color', '--timestamps'));
    say('what the containers said is in stack-test.log');
    return 1;
  } finally {
    if (values.keep === true)
      say(`left running: cd ${installation.folder}, COMPOSE_PROJECT_NAME=heliograph-stack`);
    else await installation.remove();
  }
}

async function testStack(installation: Installation, rounds: number): Promise<number> {
  const { compose } = installation;
  say('building the image');
  appendImage(installation);
  await compose('build', 'migrate');
  say('docker compose up -d on empty volumes');
  await compose('up', '-d');
  await untilHealthy(installation, WELL_WITHIN_MS);
  say('all healthy');
  const { secret, apiKey } = await addTenant(installation);
  const ca = await authorityOf(installation);
  const pump = startPump({ port: installation.httpsPort, ca, account: ACCOUNT, senders: 3, pauseMs: 200 });
  await sleep(5_000);

  try {
    for (let round = 0; round < rounds; round += 1) {
      await restartEach(installation, pump);
      await killEach(installation, pump);
    }
    await scale(installation, pump);
    await upgradeAndBack(installation, pump);
    await backUpUnderLoad(installation, pump);
  } catch (error) {
    printAnswers(pump);
    throw error;
  }
  pump.phase('end');
  await pump.stop();
  const arrivals = await drained(installation, pump);
  verifySignatures(arrivals, secret);
  const code = report(pump, lossesIn(pump.acknowledged, arrivals));
  await restoreAfterSend(installation, ca, apiKey);
  await restore(installation, { arrivals, ca });
  say('the rules, the configuration of Prometheus and the dashboards');
  await checkMonitoring(installation);
  say('the bundled object store goes through our tests');
  testObjectStore(installation);
  await onOwnServers(installation);
  if (rounds > 1) await onMinio(installation, ca);
  await compose('stop');
  if ((await testSmall()) !== 0) return 1;
  say(code === 0 ? 'good' : 'not good');
  return code;
}

/** So that no image of an installation on this machine is replaced. */
function appendImage({ folder }: Installation): void {
  append(join(folder, '.env'), { SERVICE_IMAGE: 'heliograph:0-stack-test' });
}

async function restartEach(installation: Installation, pump: Pump): Promise<void> {
  for (const service of SERVICES) {
    say(`restart ${service}`);
    pump.phase(`restart ${service}`);
    await installation.compose('restart', service);
    await settle(installation, pump);
  }
}

async function killEach(installation: Installation, pump: Pump): Promise<void> {
  for (const service of SERVICES) {
    for (const container of await containersOf(installation, service)) {
      say(`kill -9 ${container}`);
      pump.phase(`kill ${service}`);
      await killContainer(installation.run, container);
      await sleep(1_000);
      await settle(installation, pump);
    }
  }
}

async function scale(installation: Installation, pump: Pump): Promise<void> {
  say('three of api and worker, and two again');
  pump.phase('scale');
  await installation.compose('up', '-d', '--scale', 'api=3', '--scale', 'worker=3');
  await settle(installation, pump);
  pump.phase('scale');
  await installation.compose('up', '-d');
  const left = await containersOf(installation, 'api');
  if (left.length !== 2) throw new Error(`${left.length} APIs are left`);
  await settle(installation, pump);
}

async function settle(installation: Installation, pump: Pump): Promise<void> {
  await untilHealthy(installation, WELL_WITHIN_MS);
  await sleep(2_000);
  pump.phase('calm');
}

/** An image with one more migration, back to the one before, and the newer one again while Temporal is away. */
async function upgradeAndBack(installation: Installation, pump: Pump): Promise<void> {
  const { compose, folder, run } = installation;
  addMigration(folder);
  say('upgrade to an image with one more migration');
  pump.phase('upgrade');
  await run('sh', ['deploy/upgrade.sh']);
  await settle(installation, pump);
  const applied = await compose(
    'exec',
    '-T',
    'postgres',
    'psql',
    '-U',
    'postgres',
    '-At',
    '-d',
    'heliograph',
    '-c',
    "select count(*) from schema_migrations where name = '9999-stack-test'",
  );
  if (applied.trim() !== '1') throw new Error('the migration was not applied');
  const [api = ''] = await containersOf(installation, 'api');
  const newer = (await run('docker', ['inspect', '--format', '{{.Image}}', api])).trim();
  await run('docker', ['tag', newer, 'heliograph:0-stack-next']);
  say('back to the image before');
  pump.phase('step back');
  await run('sh', ['deploy/upgrade.sh', 'heliograph:previous']);
  await settle(installation, pump);
  say('the newer one again, while Temporal is away');
  pump.phase('upgrade without Temporal');
  await compose('stop', 'temporal');
  await run('sh', ['deploy/upgrade.sh', 'heliograph:0-stack-next']);
  await settle(installation, pump);
}

async function backUpUnderLoad({ run }: Installation, pump: Pump): Promise<void> {
  say('backup under load');
  pump.phase('backup');
  await run('sh', ['deploy/backup.sh', 'backups/under-load']);
  pump.phase('calm');
}

/** A message that was queued at the backup and went out since does not go out again: Temporal knows of it. */
async function restoreAfterSend(installation: Installation, ca: string, apiKey: string): Promise<void> {
  const { compose, httpsPort, peerUrl, run } = installation;
  say('backup with a queued message, which goes out; restore');
  const sends = async () => (await (await fetch(`${peerUrl}/sends`)).json()) as string[];
  await compose('stop', 'worker');
  const { status, text } = await sendText(httpsPort, ca, apiKey, 'once');
  if (status > 299) throw new Error(`the message was not taken: ${status} ${text}`);
  await run('sh', ['deploy/backup.sh', 'backups/queued']);
  await compose('start', 'worker');
  for (const deadline = Date.now() + WELL_WITHIN_MS; (await sends()).length === 0; ) {
    if (Date.now() > deadline) throw new Error('the message did not go out');
    await sleep(500);
  }
  await sleep(2_000);
  await run('sh', ['deploy/restore.sh', 'backups/queued']);
  await untilHealthy(installation, WELL_WITHIN_MS);
  await sleep(15_000);
  if ((await sends()).length !== 1) throw new Error('the message went out twice');
}

/** What was there at the backup is there again, files included, and what comes afterwards arrives. */
async function restore(
  installation: Installation,
  { arrivals, ca }: { arrivals: readonly Arrival[]; ca: string },
): Promise<void> {
  const { admin, compose, httpsPort, run } = installation;
  say('backup, all volumes of the data lost, restore');
  await run('sh', ['deploy/backup.sh', 'backups/last']);
  const media = firstMedia(arrivals);
  if (media === null) throw new Error('no file was announced');
  const before = await fetchMedia(httpsPort, ca, media.url);
  if (before.status !== 200 || !before.text.startsWith('fixture-media:')) {
    throw new Error(`the file is not there: ${before.status}`);
  }
  await compose('rm', '--stop', '--force', 'api', 'worker', 'temporal', 'postgres', 'object-store');
  for (const volume of ['postgres-data', 'object-store-data']) {
    await run('docker', ['volume', 'rm', `heliograph-stack_${volume}`]);
  }
  await run('sh', ['deploy/restore.sh', 'backups/last']);
  await untilHealthy(installation, WELL_WITHIN_MS);
  const after = await fetchMedia(httpsPort, ca, media.url);
  if (after.status !== 200 || after.text !== before.text)
    throw new Error(`the file is not back: ${after.status}`);
  if (!(await admin(['endpoint', 'list', '--waba', WABA])).includes('tenant.test'))
    throw new Error('the endpoint is not back');
  await sendMore(installation, ca, 1_000_000);
}

/** An installation with profile `external` takes over; its servers are those of the first one. */
async function onOwnServers(first: Installation): Promise<void> {
  say('profile external takes over, on servers of another project');
  await first.compose('stop', 'proxy', 'api', 'worker');
  const second = await prepareExternal(first);
  try {
    await second.compose('up', '-d');
    await untilHealthy(second, WELL_WITHIN_MS);
    const services = (await second.compose('ps', '--services')).trim().split('\n').sort();
    if (services.join() !== 'api,proxy,worker') throw new Error(`profile external runs ${services}`);
    await sendMore(second, await authorityOf(second), 3_000_000);
  } catch (error) {
    writeFileSync('stack-test-external.log', await second.compose('logs', '--no-color', '--timestamps'));
    throw error;
  } finally {
    await second.remove();
  }
  await first.compose('up', '-d');
  await untilHealthy(first, WELL_WITHIN_MS);
}

/** The same installation with its files in MinIO from now on. */
async function onMinio(installation: Installation, ca: string): Promise<void> {
  say('MinIO in place of the bundled object store');
  append(join(installation.folder, '.env'), { COMPOSE_PROFILES: 'external,postgres,temporal,minio' });
  await installation.compose('--profile', 'bundled', 'rm', '--stop', '--force', 'object-store');
  await installation.compose('up', '-d');
  await untilHealthy(installation, WELL_WITHIN_MS);
  await sendMore(installation, ca, 2_000_000);
}

function testObjectStore({ storeUrl }: Installation): void {
  const result = spawnSync(
    'npx',
    [
      'vitest',
      'run',
      '--project',
      'integration',
      'test/integration/platform/object-store/object-store.test.ts',
    ],
    { stdio: 'inherit', env: { ...process.env, OBJECT_STORE: storeUrl() } },
  );
  if (result.status !== 0) throw new Error('the object store does not pass');
}

/** 0 when nothing is wrong. */
function report(pump: Pump, { lost, disordered, duplicates }: ReturnType<typeof lossesIn>): number {
  const wrong = printAnswers(pump);
  process.stdout.write(
    `\n${pump.acknowledged.length} events acknowledged: ${lost.length} lost, ${disordered.length} out of order, ` +
      `${duplicates} twice; ${wrong} wrong answers\n${[...lost, ...disordered].slice(0, 20).join('\n')}\n`,
  );
  return lost.length + disordered.length + wrong === 0 ? 0 : 1;
}

/** One line per phase; returns how many answers upstream must not get. */
function printAnswers({ answers: all }: Pump): number {
  let wrong = 0;
  process.stdout.write('\nphase                         answers    200  other   none  slowest\n');
  for (const phase of new Set(all.map((answer) => answer.phase))) {
    const answers = all.filter((answer) => answer.phase === phase);
    const good = answers.filter(({ status }) => status === 200).length;
    const none = answers.filter(({ status }) => status === 0).length;
    const other = answers.length - good - none;
    const slowest = Math.max(...answers.map(({ ms }) => ms)) / 1_000;
    if (!phase.includes('postgres')) wrong += other;
    // Without the proxy there is nobody who could answer.
    if (!phase.includes('proxy')) wrong += none;
    const figures = [answers.length, good, other, none].map((count) => String(count).padStart(7)).join('');
    const refused = answers.filter(({ status }) => status !== 200 && status !== 0);
    const codes = [...new Set(refused.map(({ status }) => status))].join(', ');
    process.stdout.write(`${phase.padEnd(29)}${figures}  ${slowest.toFixed(1)} s  ${codes}\n`);
  }
  return wrong;
}
