import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { type RequestOptions, request } from 'node:https';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { type Installation, PUBLIC_HOST } from './installation.ts';
import type { Arrival } from './peer.ts';

/** Throws unless the first signature of every webhook is the one that the secret makes. */
export function verifySignatures(arrivals: readonly Arrival[], secret: string): void {
  const webhook = new Webhook(secret);
  for (const { headers, body } of arrivals) {
    const sentAt = new Date(Number(headers['webhook-timestamp']) * 1_000);
    const expected = webhook.sign(headers['webhook-id'] ?? '', sentAt, body);
    if (!headers['webhook-signature']?.split(' ').includes(expected)) {
      throw new Error(`the signature of ${headers['webhook-id']} is wrong`);
    }
  }
}

type Answered = { status: number; text: string };

/** What a link of a `media.ready` event leads to, fetched through the proxy. */
export function fetchMedia(port: number, ca: string, url: string): Promise<Answered> {
  const { pathname, search } = new URL(url);
  return askProxy({ port, ca, path: `${pathname}${search}` });
}

/** Sends a text to a customer as a tenant does, through the proxy. */
export function sendText(port: number, ca: string, apiKey: string, text: string): Promise<Answered> {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const body = { phoneNumberId: '800000000000111', to: '+12025550143', type: 'text', text: { body: text } };
  const options = { port, ca, path: '/api/external/messages', method: 'POST', headers };
  return askProxy(options, JSON.stringify(body));
}

function askProxy(options: RequestOptions, body = ''): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const headers = { ...options.headers, host: PUBLIC_HOST };
    const sent = request({ ...options, host: '127.0.0.1', servername: PUBLIC_HOST, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.once('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    sent.once('error', reject);
    sent.end(body);
  });
}

/** The link in the first `media.ready` event, and what the file behind it holds. */
export function firstMedia(arrivals: readonly Arrival[]): { url: string } | null {
  for (const { body } of arrivals) {
    const url = /"mediaUrl":"([^"]+)"/.exec(body)?.[1];
    if (url !== undefined && body.includes('media.ready')) return { url };
  }
  return null;
}

/** Has promtool test the alert rules, and read the configuration and every question of the dashboards. */
export async function checkMonitoring({ run, folder }: Installation): Promise<void> {
  await run('docker', [
    'build',
    '--quiet',
    '--tag',
    'heliograph-promtool',
    '--file',
    'test/stack/promtool.Dockerfile',
    'test/stack',
  ]);
  const expressions = readdirSync(join(folder, 'deploy/monitoring/grafana/dashboards')).flatMap((name) => {
    const { panels } = JSON.parse(
      readFileSync(join(folder, 'deploy/monitoring/grafana/dashboards', name), 'utf8'),
    ) as { panels: { targets: { expr: string }[] }[] };
    return panels.flatMap(({ targets }) =>
      targets.map(({ expr }) => expr.replaceAll('$__rate_interval', '5m')),
    );
  });
  const rules = expressions.map((expr, n) => ({ record: `panel:${n}`, expr }));
  writeFileSync(join(folder, 'panels.json'), JSON.stringify({ groups: [{ name: 'panels', rules }] }));
  const promtool = (...args: string[]) =>
    run('docker', [
      'run',
      '--rm',
      '--network',
      'none',
      '--volume',
      `${folder}:/checkout:ro`,
      '--workdir',
      '/checkout',
      'heliograph-promtool',
      ...args,
    ]);
  await promtool('test', 'rules', 'deploy/monitoring/rules.test.yml');
  await promtool('check', 'rules', 'charts/heliograph/files/alert-rules.yaml', 'panels.json');
  await promtool('check', 'config', '--syntax-only', 'deploy/monitoring/prometheus.yml');
}
