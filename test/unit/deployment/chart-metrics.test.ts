import { beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { repositoryFile } from './compose-file.ts';
import { BUILD_TIMEOUT_MS, GO, goProgram } from './go-programs.ts';
import { objectOf, renderChart, valueSet } from './rendered-chart.ts';

describe.skipIf(GO === undefined)('metrics of charts/heliograph', () => {
  beforeAll(async () => void (await goProgram('helm')), BUILD_TIMEOUT_MS);

  const metricsNamed = (text: string) => new Set(text.match(/\bheliograph_[a-z_]+/g));
  const documented = metricsNamed(
    repositoryFile('docs/operators/monitoring.md').replaceAll(/^\| `([a-z_]+)`/gm, '| heliograph_$1 '),
  );

  test('the service that Prometheus finds has exactly the pods of api and worker', async () => {
    const manifests = await renderChart(valueSet('everything.yaml'));
    const { selector } = objectOf(manifests, 'Service', '-metrics').spec;
    for (const component of ['api', 'worker']) {
      const labels = objectOf(manifests, 'Deployment', `-${component}`).spec.template?.metadata.labels;
      expect(labels).toMatchObject(selector as object);
    }
    const job = objectOf(manifests, 'Job').spec.template?.metadata.labels;
    expect(job).not.toMatchObject(selector as object);
  });

  test('the alert rules are those that deploy/monitoring/rules.test.yml tests', async () => {
    const rules = repositoryFile('charts/heliograph/files/alert-rules.yaml');
    const file = 'runbook: docs/operators/runbooks.md';
    const url = 'https://git.example/runbooks.md';
    for (const [runbooksUrl, expected] of [
      ['', rules],
      [url, rules.replaceAll(file, `runbook_url: ${url}`)],
    ] as const) {
      const values = {
        ...valueSet('everything.yaml'),
        metrics: { prometheusRule: { enabled: true, runbooksUrl } },
      };
      const { spec } = objectOf(await renderChart(values), 'PrometheusRule');
      expect(spec).toEqual(parse(expected));
      expect(JSON.stringify(spec).match(/"runbook(_url)?":/g)).toHaveLength(rules.split('alert:').length - 1);
    }
    expect(repositoryFile('deploy/monitoring/rules.test.yml')).toContain(
      'charts/heliograph/files/alert-rules.yaml',
    );
  });

  test('KEDA asks for metrics that there are', async () => {
    const scaled = objectOf(await renderChart(valueSet('keda-and-gateway.yaml')), 'ScaledObject');
    const triggers = scaled.spec.triggers as { type: string; metadata: { query?: string } }[];
    const queries = triggers.flatMap(({ metadata }) => metadata.query ?? []);
    expect(queries).toHaveLength(3);
    for (const query of queries) {
      expect(query).toContain('namespace="gateway"');
      for (const metric of metricsNamed(query)) expect([...documented]).toContain(metric);
    }
  });
});
