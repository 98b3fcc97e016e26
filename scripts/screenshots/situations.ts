import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import type {
  EmbeddedDescription,
  EmbeddedTenant,
} from '../../src/platform/local-stack/embedded-description.ts';
import { type Database, openDatabase } from '../../src/platform/postgres/database.ts';
import { query } from '../../src/platform/postgres/sql.ts';
import { type Album, openCamera, type Shot } from './camera.ts';
import { startOwnStack } from './own-stack.ts';
import { trafficOf } from './traffic.ts';

type World = {
  /** Of the moment: the process numbers change. */
  stack: () => EmbeddedDescription;
  tenant: EmbeddedTenant;
  database: Database;
  traffic: ReturnType<typeof trafficOf>;
  /** A page of the Temporal UI: a path below the namespace. */
  temporal: (name: string, path: string, prepare?: Shot['prepare']) => Promise<void>;
  portal: (name: string, path: string) => Promise<void>;
  operator: (name: string, path: string) => Promise<void>;
};

/** Each goes on where the one before has ended. A burst of successes would keep the breaker closed for five minutes. */
const SITUATIONS = [calm, outage, comeback, burst, temporalAway];

/** Starts the product, brings it into five situations, and takes pictures of the Temporal UI and the portal in each. */
export async function takeSituations(album: Album): Promise<void> {
  const { description, stop } = await startOwnStack();
  const database = openDatabase({
    url: description().postgresUrl,
    poolMax: 2,
    applicationName: 'screenshots',
  });
  const camera = await openCamera(description(), album);
  const [tenant] = description().tenants;
  try {
    if (tenant === undefined) throw new Error('the demonstration has no tenant');
    const page = (who: Shot['who'], base: string) => (name: string, path: string) =>
      camera.take({ name, who, path: `${base}${path}`, maxHeight: 1_100 });
    const world: World = {
      stack: description,
      tenant,
      database,
      traffic: trafficOf(description(), tenant),
      temporal: (name, path, prepare = listed) =>
        camera.take({
          name,
          of: 'temporal',
          who: null,
          maxHeight: 800,
          prepare,
          path: `/namespaces/default/workflows${path}`,
        }),
      portal: page('admin', `/portal/w/${tenant.wabaId}`),
      operator: page('operator', '/portal/operator'),
    };
    for (const situation of SITUATIONS) {
      process.stdout.write(`${situation.name}\n`);
      await situation(world);
    }
  } finally {
    await camera.close();
    await database.destroy();
    await stop();
  }
}

/** Now and then an event, delivered at once. */
async function calm({ traffic, temporal, portal }: World): Promise<void> {
  await traffic.events(15, 700);
  await sleep(3_000);
  await temporal('calm-temporal', '');
  await temporal('calm-temporal-run', '', firstDelivery());
  await portal('calm-portal', '');
}

/** Thousands of events within seconds. */
async function burst({ traffic, temporal, portal, operator, database }: World): Promise<void> {
  const sent = traffic.burst(3_000);
  await sleep(3_000);
  await operator('burst-health', '/health');
  await temporal('burst-temporal', '');
  await sent;
  await portal('burst-portal', '');
  await emptied(database);
}

/** A server that fails for an hour, with 500 events. */
async function outage(world: World): Promise<void> {
  const { traffic, temporal, portal, operator, tenant } = world;
  await traffic.answer({ mode: 'status', status: 503 });
  await traffic.events(500, 20);
  await until('its endpoint is probed', async () => (await modeOf(world)) === 'probing');
  await sleep(30_000);
  await moveBackAnHour(world);
  await temporal(
    'outage-endpoint-run',
    runPath(`endpoint/${tenant.endpointId}`),
    detailed(/the oldest for 6\d min/),
  );
  await temporal('outage-temporal', '');
  await temporal('outage-temporal-endpoints', listOf('endpointTrouble'));
  await temporal('outage-delivery-run', listOf('deliverEvent'), firstDelivery('Pending Activities'));
  await portal('outage-endpoint', `/endpoints/${tenant.endpointId}`);
  await portal('outage-deliveries', '/deliveries');
  await portal('outage-portal', '');
  await operator('outage-health', '/health');
}

/** The server is back, but so slow at first that its backlog takes minutes. */
async function comeback(world: World): Promise<void> {
  const { traffic, temporal, portal, database, tenant } = world;
  await traffic.answer({ mode: 'slow', delayMs: 4_000 });
  await database.raw('update endpoint_health set next_probe_at = now() where next_probe_at is not null');
  await until('its endpoint takes deliveries', async () => (await modeOf(world)) === 'open');
  await sleep(3_000);
  const run = runPath(`endpoint/${tenant.endpointId}`);
  await temporal('return-endpoint-run', run, detailed(/Pending: \d\d/));
  await traffic.answer({ mode: 'ok' });
  await emptied(database);
  await sleep(40_000);
  await temporal('return-endpoint-run-ended', run, opened());
  await temporal('return-temporal', '');
  await portal('return-endpoint', `/endpoints/${tenant.endpointId}`);
}

/** Temporal freezes while a server fails, is killed, and is there again. */
async function temporalAway({ stack, traffic, temporal, operator, tenant }: World): Promise<void> {
  process.kill(stack().pids.temporal ?? 0, 'SIGSTOP');
  await traffic.events(20, 100);
  await traffic.answer({ mode: 'status', status: 503 });
  await traffic.events(20, 100);
  await sleep(30_000);
  await operator('temporal-away-health', '/health');
  process.kill(stack().pids.temporal ?? 0, 'SIGKILL');
  await until('the Temporal UI is there', async () => (await fetch(stack().temporalUiUrl)).ok);
  await sleep(5_000);
  await temporal('temporal-back-temporal', '');
  await operator('temporal-back-health', '/health');
  await sleep(30_000);
  await temporal('temporal-back-later', '');
  await temporal(
    'temporal-back-endpoint-run',
    runPath(`endpoint/${tenant.endpointId}`),
    detailed(/Pending: \d/),
  );
  await temporal('temporal-back-delivery-run', listOf('deliverEvent'), firstDelivery('Pending Activities'));
}

const runPath = (workflowId: string) => `/${encodeURIComponent(workflowId)}`;

/** The running workflows of a type. */
const listOf = (type: string) =>
  `?query=${encodeURIComponent(`WorkflowType="${type}" AND ExecutionStatus="Running"`)}`;

async function listed(page: Page): Promise<void> {
  await page
    .getByRole('link', { name: /^(delivery|endpoint)/ })
    .first()
    .waitFor();
}

/** A run, with one of its tabs. */
function opened(tab = 'History') {
  return async (page: Page) => {
    await page.getByRole('tab', { name: tab }).click();
    await page.waitForTimeout(1_500);
  };
}

/** The newest run of a delivery in the list, with one of its tabs. */
function firstDelivery(tab?: string) {
  return async (page: Page) => {
    const links = page.getByRole('link', { name: /^delivery\// });
    await links.first().click();
    await opened(tab)(page);
  };
}

/** A run whose details say this, which may take a while. The UI shows Markdown in frames, the current details in the last. */
function detailed(text: RegExp) {
  return async (page: Page) => {
    await opened('User Metadata')(page);
    const details = page.frameLocator('iframe').last();
    await until(`its details say ${text}`, async () => {
      await page.reload();
      await details.getByText(text).waitFor({ timeout: 15_000 });
      return true;
    });
  };
}

async function modeOf({ database, tenant }: World): Promise<string> {
  const [row] = await query<{ mode: string }>(
    database,
    'select mode from endpoint_health where endpoint_id = :endpointId',
    { endpointId: tenant.endpointId },
  );
  return row?.mode ?? 'gone';
}

async function emptied(database: Database): Promise<void> {
  await until(
    'nothing waits',
    async () => (await query(database, 'select 1 from delivery_queue limit 1')).length === 0,
  );
}

/** As if all that came had come an hour earlier, and the endpoint were probed now. Temporal keeps its times. */
async function moveBackAnHour({ database, tenant }: World): Promise<void> {
  const back = (...columns: string[]) =>
    columns.map((column) => `${column} = ${column} - interval '1 hour'`).join(', ');
  await query(
    database,
    `with moved as (update deliveries set ${back('created_at', 'finished_at')} where endpoint_id = :id),
     tried as (update attempts set ${back('started_at')} where endpoint_id = :id),
     counted as (update endpoint_minutes set ${back('minute')} where endpoint_id = :id),
     waiting as (update delivery_queue set ${back('created_at', 'first_failed_at')} where endpoint_id = :id)
     update endpoint_health set ${back('failing_since', 'mode_changed_at')}, next_probe_at = now()
      where endpoint_id = :id`,
    { id: tenant.endpointId },
  );
}

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 300_000;
  while (!(await isSo().catch(() => false))) {
    if (performance.now() > deadline) throw new Error(`it did not come to this within 5 minutes: ${what}`);
    await sleep(500);
  }
}
