import { readFileSync } from 'node:fs';
import type { Client } from '@temporalio/client';
import { expect, onTestFinished, test } from 'vitest';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { connectTemporal } from '../../../src/platform/temporal/worker-connection.ts';
import { startWorker } from '../../../src/worker/start-worker.ts';
import { runAdmin } from '../../support/admin-cli.ts';
import {
  ACCOUNT,
  bodyOf,
  imageMessage,
  messageStatus,
  textMessage,
} from '../../support/load/upstream-bodies.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { drawIdsApart, seededWorkerDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { answer, eventually, startReceiver } from '../../support/webhook-receiver.ts';

const GUIDE = new URL('../../../docs/operators/operations.md', import.meta.url);
const ENDED = 'wamid.ENDED';
const WAITS = 'wamid.WAITS';

/** The filters of the guide, by what they say that they find: the code spans of their cells that compare something. */
function filtersOfGuide(): Map<string, string[]> {
  const lines = readFileSync(GUIDE, 'utf8').split('\n');
  const start = lines.indexOf('| what | filter |') + 2;
  const rows = lines.slice(start, start + lines.slice(start).findIndex((line) => !line.startsWith('|')));
  return new Map(
    rows.map((row) => {
      const [, what = '', cell = ''] = row.split('|').map((part) => part.trim());
      const spans = [...cell.matchAll(/`([^`]+)`/g)].map(([, span = '']) => span);
      return [what, spans.filter((span) => span.includes('='))];
    }),
  );
}

/** The filters in the addresses that the guide has for pasting, in its way of writing them. */
function filtersOfAddresses(): string[] {
  const addresses = readFileSync(GUIDE, 'utf8').matchAll(/`\/namespaces\/heliograph\/workflows\?(\S+)`/g);
  return [...addresses].map(([, search = '']) =>
    (new URLSearchParams(search).get('query') ?? '').replaceAll('="', ' = "'),
  );
}

/** A worker with a delivery that failed for good, one that waits, a test event, and media that upstream does not hand out. */
async function installation() {
  const { database, url } = await seededWorkerDatabase(20);
  await drawIdsApart(database);
  const receiver = await startReceiver((webhook, response) =>
    answer(webhook.headers['x-service-event-id'] === ENDED ? 500 : 503)(webhook, response),
  );
  onTestFinished(() => receiver.close());
  const { id } = await addEndpoint(database, ACCOUNT.wabaId, `${receiver.url}/hook`);
  const settings = testSettings(url, {
    HELIOGRAPH_DELIVERY_WORKFLOWS: 'always',
    HELIOGRAPH_WEBHOOK_RETRY_SCHEDULE_SECONDS: '3600',
  });
  const config = loadConfig(settings);
  const { client, connection } = await connectTemporal(config.temporal);
  onTestFinished(() => connection.close());
  const worker = await startWorker(config, silentLogger);
  onTestFinished(() => worker.stop());
  const [waba] = await query<{ tenantId: string }>(
    database,
    'select tenant_id as "tenantId" from wabas where waba_id = :wabaId',
    { wabaId: ACCOUNT.wabaId },
  );
  await insertBodies(database, [
    bodyOf(ACCOUNT, [
      textMessage(ENDED, 'x'),
      messageStatus(WAITS, 'sent'),
      imageMessage('wamid.IMAGE', '7001'),
    ]),
  ]);
  const sent = await runAdmin(settings, ['endpoint', 'test', id, '--json']);
  const { eventId: testEventId } = JSON.parse(sent.stdout);
  await eventually('all have failed once', async () => {
    const rows = await query(database, 'select 1 from delivery_queue where attempts > 0');
    return rows.length === 3;
  });
  // The attempt that follows is the last of the schedule.
  await execute(
    database,
    `update delivery_queue q set next_attempt_at = now() from events e
      where e.day = q.event_day and e.id = q.event_uuid and e.event_id = :ended`,
    { ended: ENDED },
  );
  return { client, settings, config, id, tenantId: waba?.tenantId ?? '', testEventId };
}

/** Kinds of what a filter finds among the runs of one installation; the look at its numbers may be over or not. */
async function found(client: Client, filter: string, taskQueuePrefix: string): Promise<string[]> {
  const types = new Set<string>();
  for await (const run of client.workflow.list({ query: filter }))
    if (run.taskQueue.startsWith(taskQueuePrefix) && run.type !== 'refreshNumbers')
      types.add(`${run.type} ${run.status.name}`);
  return [...types].sort();
}

test("every list filter of the operator's guide is understood by Temporal and finds what the guide says", async () => {
  const { client, settings, config, id, tenantId, testEventId } = await installation();
  const printed = await runAdmin(settings, ['events', 'search-attribute', WAITS, '--json']);
  const { value: hash } = JSON.parse(printed.stdout);
  const values: Record<string, string> = {
    HeliographEndpointId: id,
    HeliographWabaId: ACCOUNT.wabaId,
    HeliographTenantId: tenantId,
  };
  const pending = ['deliverEvent RUNNING'];
  const all = [
    'deliverEvent FAILED',
    ...['deliverEvent RUNNING', 'endpointTrouble RUNNING', 'storeInboundMedia RUNNING'],
  ];
  const expected: Record<string, string[][]> = {
    'an event': [pending],
    'open workflows of an endpoint': [['deliverEvent RUNNING', 'endpointTrouble RUNNING']],
    'workflows of a WABA or tenant': [all, all],
    'deliveries with a workflow that are pending': [pending],
    'deliveries that failed permanently': [['deliverEvent FAILED']],
    'pending deliveries of an event type': [pending],
    'endpoints in trouble: one run each': [['endpointTrouble RUNNING']],
    'media downloads in progress': [['storeInboundMedia RUNNING']],
  };
  const guide = filtersOfGuide();
  expect([...guide.keys()]).toEqual(Object.keys(expected));
  expect(filtersOfAddresses()).toHaveLength(5);
  expect([...guide.values()].flat()).toEqual(expect.arrayContaining(filtersOfAddresses()));
  const filled = (filter: string) =>
    filter.replaceAll(/(Heliograph\w+) = "[^"]*"/g, (given, name: string) =>
      name === 'HeliographEventId'
        ? `${name} = "${hash}"`
        : name in values
          ? `${name} = "${values[name]}"`
          : given,
    );
  const prefix = config.temporal.taskQueuePrefix;
  for (const [what, filters] of guide) {
    expect(filters, what).toHaveLength(expected[what]?.length ?? 0);
    for (const [n, filter] of filters.entries()) {
      let types: string[] = [];
      const wanted = expected[what]?.[n] ?? [];
      // Visibility follows the histories a moment later.
      await eventually(`${what}: ${filled(filter)}`, async () => {
        types = await found(client, filled(filter), prefix);
        return wanted.every((one) => types.includes(one)) && types.length === wanted.length;
      }).catch(() => expect([what, types]).toEqual([what, wanted]));
    }
  }
  // A test event is named as it is.
  await eventually('the test event', async () => {
    const types = await found(client, `HeliographEventId = "${testEventId}"`, prefix);
    return types.join() === 'deliverEvent FAILED';
  });
});
