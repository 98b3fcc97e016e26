import { setTimeout as sleep } from 'node:timers/promises';
import type { Installation } from './installation.ts';
import type { Arrival } from './peer.ts';
import { lossesIn, type Pump, startPump } from './pump.ts';

export const WABA = '900000000000101';
export const ACCOUNT = {
  wabaId: WABA,
  phoneNumberId: '800000000000111',
  displayPhoneNumber: '12025550100',
};
/** A machine with much else to do takes minutes. */
export const WELL_WITHIN_MS = 480_000;
const DRAIN_WITHIN_MS = 180_000;

const startedMs = performance.now();

/** A line of the test's output, with its time. */
export function say(line: string): void {
  process.stdout.write(`${((performance.now() - startedMs) / 1_000).toFixed(0).padStart(5)} s  ${line}\n`);
}

/** By the commands of docs/operators/operations.md; returns the API key and the secret of the endpoint. */
export async function addTenant({ admin }: Installation): Promise<{ secret: string; apiKey: string }> {
  await admin(['tenant', 'create', '--name', 'Fixture Store']);
  await admin(
    ['waba', 'add', '--tenant', '1', '--waba', WABA, '--from-upstream', '--access-token-stdin'],
    'fixture-token\n',
  );
  const scopes = 'read,send,manage_webhooks';
  const key = await admin([
    'key',
    'create',
    '--waba',
    WABA,
    '--name',
    'order system',
    '--scopes',
    scopes,
    '--json',
  ]);
  const { apiKey } = JSON.parse(key) as { apiKey: string };
  const added = await admin([
    'endpoint',
    'add',
    '--waba',
    WABA,
    '--url',
    'https://tenant.test/webhooks',
    '--json',
  ]);
  const { secret } = JSON.parse(added) as { secret: string };
  await admin(['endpoint', 'test', '1']);
  return { secret, apiKey };
}

async function arrivalsAt(url: string): Promise<Arrival[]> {
  return (await (await fetch(`${url}/arrivals`)).json()) as Arrival[];
}

/** All that arrived, once nothing is missing or the time is over. */
export async function drained({ peerUrl }: Pick<Installation, 'peerUrl'>, pump: Pump): Promise<Arrival[]> {
  const deadline = Date.now() + DRAIN_WITHIN_MS;
  for (;;) {
    const arrivals = await arrivalsAt(peerUrl);
    if (lossesIn(pump.acknowledged, arrivals).lost.length === 0 || Date.now() > deadline) return arrivals;
    await sleep(1_000);
  }
}

/** A few bodies from an id on, files among them; rejects unless all events arrive in order. */
export async function sendMore(installation: Installation, ca: string, from: number): Promise<void> {
  const pump = startPump({
    port: installation.httpsPort,
    ca,
    account: ACCOUNT,
    senders: 10,
    pauseMs: 100,
    from,
  });
  await sleep(5_000);
  await pump.stop();
  const { lost, disordered } = lossesIn(pump.acknowledged, await drained(installation, pump));
  if (lost.length + disordered.length > 0)
    throw new Error(`lost or out of order: ${[...lost, ...disordered]}`);
  say(`${pump.acknowledged.length} further events arrived`);
}
