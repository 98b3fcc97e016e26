import { expect, onTestFinished, test, vi } from 'vitest';
import { connected, connectLink } from '../../../examples/provisioning/connect-number.ts';
import { platformApi } from '../../../examples/provisioning/provision.ts';
import { PATIENCE_MS } from '../../support/patience.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';
import { addPlatformKey } from '../api/provisioning/platform-client.ts';
import { customerOf, goThrough, RETURNS, startSetupWorld } from '../setup/setup-world.ts';

/** The example as a reader runs it, while workers die. */

test('a customer of the product connects a number, though workers are killed in between: nothing twice', async () => {
  const world = await startSetupWorld();
  const { platformKey } = await addPlatformKey(world.database);
  const ask = platformApi(world.origin, platformKey);
  const customer = { id: 'customer-1', name: 'Customer 1', wabaId: '' };
  await ask('PUT', `/tenants/${customer.id}`, { businessName: customer.name });
  const link = await connectLink(ask, customer, { visit: 'visit-1', ...RETURNS });
  // Upstream is slow at these, so that a worker is killed while it waits.
  const SLOW = ['waba_subscription', 'registration'] as const;
  for (const match of SLOW) await world.addFault({ match, kind: 'slow', delayMs: 600_000, times: 1 });
  await goThrough(customerOf(world), new URL(link.url).pathname, 'finish');
  for (const match of SLOW) {
    const worker = startWorkerProcess(world.settings);
    await worker.ready();
    await vi.waitFor(async () => expect(await world.hits(match)).toBe(1), {
      timeout: PATIENCE_MS,
      interval: 100,
    });
    await worker.kill();
  }
  const last = startWorkerProcess(world.settings);
  onTestFinished(() => last.stop());
  await last.ready();
  const done = await connected(ask, customer, link.id, 200);
  expect(done).toMatchObject({
    state: 'done',
    wabaId: expect.any(String),
    phoneNumberId: expect.any(String),
  });
  const registered = (await world.asked()).filter((line) =>
    line.endsWith(`/${done.phoneNumberId}/register 200`),
  );
  expect(registered).toHaveLength(1);
  const { data } = await ask<{ data: { type: string }[] }>('GET', `/operation-events?tenant=${customer.id}`);
  const counts = Map.groupBy(data, ({ type }) => type);
  for (const type of ['number.connected', 'setup_link.done'])
    expect([type, counts.get(type)?.length]).toEqual([type, 1]);
});
