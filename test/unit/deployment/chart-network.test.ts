import { beforeAll, describe, expect, test } from 'vitest';
import { repositoryFile } from './compose-file.ts';
import { BUILD_TIMEOUT_MS, GO, goProgram } from './go-programs.ts';
import { MINIMAL, objectOf, renderChart, valueSet } from './rendered-chart.ts';

describe.skipIf(GO === undefined)('the network of charts/heliograph', () => {
  beforeAll(async () => void (await goProgram('helm')), BUILD_TIMEOUT_MS);

  test('workers and migrations are reached by no one but Prometheus', async () => {
    const manifests = await renderChart(valueSet('everything.yaml'));
    expect(objectOf(manifests, 'NetworkPolicy', '-migrate').spec.ingress).toEqual([]);
    const ingress = objectOf(manifests, 'NetworkPolicy', '-worker').spec.ingress;
    expect(ingress).toMatchObject([{ ports: [{ port: 'metrics' }], from: [{}, {}] }]);
  });

  test("the port of operators' pages is open to those whom the values name, and to nobody else", async () => {
    const operator = { HELIOGRAPH_PORTAL_OPERATOR_LISTEN: '0.0.0.0:8090' };
    const settings = { ...(MINIMAL.settings as object), ...operator };
    const operatorsFrom = [{ podSelector: { matchLabels: { app: 'vpn' } } }];
    const apiFrom = [{ podSelector: { matchLabels: { app: 'ingress' } } }];
    for (const networkPolicy of [{}, { apiFrom }, { operatorsFrom }, { apiFrom, operatorsFrom }]) {
      const { egress } = MINIMAL.networkPolicy;
      const manifests = await renderChart({
        ...MINIMAL,
        settings,
        networkPolicy: { ...networkPolicy, egress },
      });
      const rules = objectOf(manifests, 'NetworkPolicy', '-api').spec.ingress as {
        ports: { port: string }[];
        from?: object[];
      }[];
      const open = rules.filter(({ ports }) => ports.some(({ port }) => port === 'operators'));
      expect(open.map(({ from }) => from)).toEqual('operatorsFrom' in networkPolicy ? [operatorsFrom] : []);
    }
  });

  test('unless the values say otherwise, webhooks reach public addresses and nothing private', async () => {
    const manifests = await renderChart(valueSet('everything.yaml'));
    expect(valueSet('everything.yaml')).not.toHaveProperty('networkPolicy.egress.restricted');
    const { egress, policyTypes } = objectOf(manifests, 'NetworkPolicy', '-worker').spec;
    expect(policyTypes).toEqual(['Ingress', 'Egress']);
    const blocks = (egress as { to?: { ipBlock?: { cidr: string; except?: string[] } }[] }[])
      .flatMap(({ to = [] }) => to)
      .flatMap(({ ipBlock }) => ipBlock ?? []);
    expect(blocks.map(({ cidr }) => cidr)).toEqual(['0.0.0.0/0', '2000::/3', '10.20.0.5/32']);
    expect(blocks[0]?.except).toEqual(
      expect.arrayContaining([
        '10.0.0.0/8',
        '127.0.0.0/8',
        '169.254.0.0/16',
        '172.16.0.0/12',
        '192.168.0.0/16',
      ]),
    );
  });

  test('values that do not say where PostgreSQL and Temporal are make no installation that cannot reach them', async () => {
    await expect(renderChart({ ...MINIMAL, networkPolicy: {} })).rejects.toThrow(
      'networkPolicy.egress.to is missing',
    );
    const rulesOf = async (networkPolicy: object) => {
      const manifests = await renderChart({ ...MINIMAL, networkPolicy });
      const policies = manifests.filter(({ kind }) => kind === 'NetworkPolicy');
      return policies.map(({ spec }) => (spec.egress as object[] | undefined)?.length ?? null);
    };
    expect(await rulesOf({ egress: { to: [] } })).toEqual(expect.arrayContaining([1, 2, 2]));
    expect(await rulesOf({ egress: { restricted: false } })).toEqual([null, null, null]);
    expect(await rulesOf({ enabled: false })).toEqual([]);
  });

  test('the example of an Ingress collects no bodies, in the docs as in the checks', async () => {
    const { annotations } = objectOf(await renderChart(valueSet('everything.yaml')), 'Ingress').metadata;
    expect(annotations).toMatchObject({ 'nginx.ingress.kubernetes.io/proxy-request-buffering': 'off' });
    const docs = repositoryFile('docs/operators/kubernetes.md');
    for (const [name, value] of Object.entries(annotations ?? {}))
      expect(docs).toMatch(new RegExp(`${name}: "?${value}"?$`, 'm'));
  });

  test('Ingress and HTTPRoute lead the host of the public URL to the API', async () => {
    const ingress = objectOf(await renderChart(valueSet('everything.yaml')), 'Ingress');
    expect(ingress.spec.rules).toMatchObject([
      {
        host: 'gateway.example',
        http: { paths: [{ backend: { service: { name: 'gw-heliograph-api', port: { name: 'http' } } } }] },
      },
    ]);
    const route = objectOf(await renderChart(valueSet('keda-and-gateway.yaml')), 'HTTPRoute');
    expect(route.spec).toMatchObject({
      hostnames: ['gateway.example'],
      rules: [{ backendRefs: [{ name: 'gateway-api', port: 80 }] }],
    });
  });
});
