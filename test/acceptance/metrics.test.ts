import { describe, expect, inject, test } from 'vitest';
import { readPorts } from '../../dev/embedded/ports.ts';
import { description } from './support/stack.ts';
import { postUpstream, textBody } from './support/upstream.ts';

const ports = () => readPorts({ HELIOGRAPH_EMBEDDED_PORT_BASE: String(inject('stack').portBase) });

async function scrape(port: number): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`);
  expect(response.status).toBe(200);
  return await response.text();
}

describe('metrics', () => {
  test('API and worker tell them at ports of their own', async () => {
    expect(await postUpstream(textBody('wamid.metrics', 'metrics'))).toBe(200);
    const { apiMetrics, workerHealth } = ports();
    expect(await scrape(apiMetrics)).toMatch(
      /^heliograph_upstream_webhooks_total\{status="200"\} [1-9]\d*$/m,
    );
    expect(await scrape(workerHealth)).toMatch(/^heliograph_database_up 1$/m);
  });

  test('the public ports have none', async () => {
    const { apiUrl } = description();
    expect((await fetch(`${apiUrl}/metrics`)).status).toBe(404);
  });
});
