import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { findFreePorts } from '../../../dev/embedded/ports.ts';
import { startApiProcess } from '../../support/application-process.ts';
import { ACCOUNT, bodyOf, textMessage } from '../../support/load/upstream-bodies.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { answer, eventually, startReceiver } from '../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';
import { signed } from '../api/api-harness.ts';

const MONITORING = new URL('../../../deploy/monitoring/', import.meta.url).pathname;
const RULES = new URL('../../../charts/heliograph/files/alert-rules.yaml', import.meta.url).pathname;

/** What Prometheus adds to each series, and the scrape configuration of Compose. */
const ADDED_LABELS = ['instance', 'job', 'service'];

/** Metrics of others, with the labels that are asked for: of Prometheus itself, Temporal's server, postgres_exporter. */
const OF_OTHERS: Readonly<Record<string, readonly string[]>> = {
  up: [],
  service_requests: ['operation'],
  service_errors: [],
  service_latency_bucket: ['le', 'operation'],
  persistence_latency_bucket: ['le'],
  pg_stat_activity_count: ['state'],
  pg_stat_database_xact_commit: ['datname'],
  pg_stat_database_blks_hit: ['datname'],
  pg_stat_database_blks_read: ['datname'],
  pg_database_size_bytes: ['datname'],
  pg_locks_count: ['mode'],
};

/** Metrics that are there only while something goes wrong, so that no scrape of a healthy process has them. */
const OF_TROUBLE: Readonly<Record<string, readonly string[]>> = {
  temporal_request_failure_total: ['operation', 'status_code'],
  temporal_long_request_failure_total: ['operation', 'status_code'],
  temporal_activity_execution_failed_total: ['activity_type'],
  // Only where the process shows one; a test of its own has it.
  heliograph_certificate_expiry_timestamp_seconds: ['certificate'],
};

type Asked = { where: string; metric: string; labels: string[] };

/** The metrics that an expression of PromQL names, each with the labels that it is filtered or grouped by. */
function askedIn(where: string, expression: string): Asked[] {
  const grouped = [...expression.matchAll(/\b(?:by|on|without|ignoring)\s*\(([^)]*)\)/g)].flatMap(
    ([, names = '']) => names.split(',').map((name) => name.trim()),
  );
  const rest = expression
    .replaceAll(/\b(?:by|on|without|ignoring|group_left|group_right)\s*\([^)]*\)/g, ' ')
    .replaceAll(/\[[^\]]*\]/g, ' ');
  return [...rest.matchAll(/([a-zA-Z_:][\w:]*)\s*(\{[^}]*\}|\(|)/g)].flatMap(
    ([, metric = '', behind = '']) => {
      if (behind === '(' || ['and', 'or', 'unless', 'bool', 'offset', 'e'].includes(metric)) return [];
      const filtered = [...behind.matchAll(/([a-zA-Z_]\w*)\s*(?:=~|!~|!=|=)/g)].map(
        ([, label = '']) => label,
      );
      return [{ where, metric, labels: [...filtered, ...grouped.filter((label) => label !== '')] }];
    },
  );
}

function allAsked(): Asked[] {
  const folder = `${MONITORING}grafana/dashboards/`;
  const ofDashboards = readdirSync(folder).flatMap((file) => {
    const { panels } = JSON.parse(readFileSync(folder + file, 'utf8')) as {
      panels: { title: string; targets: { expr: string }[] }[];
    };
    return panels.flatMap(({ title, targets }) =>
      targets.flatMap(({ expr }) => askedIn(`${file}: ${title}`, expr)),
    );
  });
  const { groups } = parse(readFileSync(RULES, 'utf8')) as {
    groups: { rules: { alert: string; expr: string }[] }[];
  };
  const ofRules = groups.flatMap(({ rules }) => rules.flatMap(({ alert, expr }) => askedIn(alert, expr)));
  return [...ofDashboards, ...ofRules];
}

/** Label names by metric, of texts in Prometheus's format. */
function exposedIn(texts: readonly string[]): Map<string, Set<string>> {
  const exposed = new Map<string, Set<string>>();
  for (const line of texts.join('\n').split('\n')) {
    const [, metric, labels = ''] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? /.exec(line) ?? [];
    if (metric === undefined) continue;
    const known = exposed.get(metric) ?? new Set<string>();
    for (const [, label = ''] of labels.matchAll(/([a-zA-Z_]\w*)="(?:[^"\\]|\\.)*"/g)) known.add(label);
    exposed.set(metric, known);
  }
  for (const [metric, labels] of Object.entries({ ...OF_OTHERS, ...OF_TROUBLE }))
    exposed.set(metric, new Set(labels));
  return exposed;
}

/** What is asked for and not there; a label by which several metrics are grouped must be on one of them. */
function missingOf(asked: readonly Asked[], exposed: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  return asked.flatMap(({ where, metric, labels }) => {
    const has = exposed.get(metric);
    if (has === undefined) return [`${where}: no metric ${metric}`];
    const wrong = labels.filter((label) => !has.has(label) && !ADDED_LABELS.includes(label));
    return wrong.map((label) => `${where}: ${metric} has no label ${label}`);
  });
}

test('an expression is read with its metrics and their labels', () => {
  const text =
    'histogram_quantile(0.5, sum by (le, kind) (rate(a_bucket{x="1",y!~"2"}[$__rate_interval]))) > 4 * 3600 or absent(up{job="h"})';
  expect(askedIn('here', text)).toEqual([
    { where: 'here', metric: 'a_bucket', labels: ['x', 'y', 'le', 'kind'] },
    { where: 'here', metric: 'up', labels: ['job', 'le', 'kind'] },
  ]);
  const there = exposedIn(['a_bucket{le="1",x="{,}"} 3']);
  expect(missingOf(askedIn('here', 'sum by (le) (a_bucket{z="1"}) / b'), there)).toEqual([
    'here: a_bucket has no label z',
    'here: no metric b',
  ]);
});

test('every metric and label of the dashboards and alert rules is in a scrape of the running product', async () => {
  const { database, url } = await seededDatabase(20);
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  // Retries are activities; a first attempt that goes well is none.
  receiver.behave((webhook, response) =>
    answer(webhook.headers['x-service-attempt'] === '1' ? 503 : 200)(webhook, response),
  );
  await addEndpoint(database, ACCOUNT.wabaId, `${receiver.url}/hook`);
  const [workerPort = 0, apiPort = 0] = await findFreePorts(2);
  const settings = testSettings(url, {
    HELIOGRAPH_DELIVERY_WORKFLOWS: 'always',
    HELIOGRAPH_WORKER_HEALTH_PORT: String(workerPort),
    HELIOGRAPH_API_METRICS_PORT: String(apiPort),
  });
  const worker = startWorkerProcess(settings);
  onTestFinished(() => worker.stop());
  const api = await startApiProcess(settings);
  onTestFinished(() => api.kill());
  await worker.ready();
  const body = bodyOf(ACCOUNT, [textMessage(`wamid.${randomBytes(6).toString('hex')}`, 'x')]);
  const headers = signed(body, 'test-app-secret');
  expect((await fetch(`${api.url}/upstream/webhook`, { method: 'POST', body, headers })).status).toBe(200);
  await fetch(`${api.url}/me`);
  await eventually('delivered', () => receiver.received.length > 1);

  const asked = allAsked();
  expect(asked.length).toBeGreaterThan(60);
  const scrape = async () =>
    await Promise.all(
      [workerPort, apiPort].map(
        async (port) => await (await fetch(`http://127.0.0.1:${port}/metrics`)).text(),
      ),
    );
  let missing: string[] = [];
  await eventually('everything is exposed', async () => {
    missing = missingOf(asked, exposedIn(await scrape()));
    return missing.length === 0;
  }).catch(() => undefined);
  expect(missing).toEqual([]);
});
