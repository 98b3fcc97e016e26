import { randomUUID } from 'node:crypto';
import { expect, onTestFinished, test, vi } from 'vitest';
import { floorOf, oldestPendingAt } from '../../../src/engine/deliveries/backlog.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { readSystemFigures } from '../../../src/worker/metrics/system-figures.ts';
import { buffersTouched } from '../../support/buffers-touched.ts';
import { holdSnapshot } from '../../support/held-snapshot.ts';
import { addEndpoints, queueEach } from '../../support/many-endpoints.ts';
import { seededWorkerDatabase, testDatabase } from '../../support/test-database.ts';

const WABA = '900000000000101';

test('scrapes within an hour read the secrets of all endpoints once', async () => {
  const { database } = await testDatabase();
  let reads = 0;
  const counting = <Given extends Database>(given: Given): Given => ({
    ...given,
    raw: (text, bindings) => {
      if (text.includes('from webhook_endpoints') && text.includes('split_part')) reads += 1;
      return given.raw(text, bindings);
    },
    transaction: (work) => given.transaction((trx) => work(counting(trx))),
  });
  const watched = counting<Database>(database);
  const clock = vi.spyOn(performance, 'now');
  try {
    const startMs = performance.now();
    clock.mockReturnValue(startMs);
    for (let n = 0; n < 3; n += 1) await readSystemFigures(watched, 10_000);
    expect(reads).toBe(1);
    clock.mockReturnValue(startMs + 3_600_001);
    await readSystemFigures(watched, 10_000);
    expect(reads).toBe(2);
  } finally {
    clock.mockRestore();
  }
});

test('a figure that takes too long is left out and named, and no other is', async () => {
  const { database } = await testDatabase();
  const { figures: all } = await readSystemFigures(database, 10_000);
  await database.transaction(async (holder) => {
    await holder.raw('lock table housekeeping_steps in access exclusive mode');
    const { figures, slow } = await readSystemFigures(database, 1_000);
    expect(slow).toEqual(['housekeeping']);
    const { housekeepingFailingSeconds: _missing, ...others } = all;
    expect(Object.keys(figures).toSorted()).toEqual(Object.keys(others).toSorted());
  });
});

test('with an old snapshot, the oldest pending delivery is found without a walk over those that were delivered since', async () => {
  const { database, url } = await seededWorkerDatabase();
  const [endpointId = ''] = await addEndpoints(database, WABA, {
    urls: ['https://e.example'],
    ratePerSecond: null,
  });
  await database.raw('vacuum analyze');
  await holdSnapshot(url);
  const clock = vi.spyOn(performance, 'now');
  onTestFinished(() => clock.mockRestore());
  const floor = floorOf(database);
  let nowMs = performance.now();
  const look = async () => {
    nowMs += 180_000;
    clock.mockReturnValue(nowMs);
    let oldest: Date | null = null;
    const touched = await buffersTouched(database, async (explaining) => {
      oldest = await oldestPendingAt(explaining, floor);
    });
    return { oldest, touched };
  };
  const queue = (count: number) =>
    queueEach(
      database,
      WABA,
      Array.from({ length: count }, () => endpointId),
      () => `lane ${randomUUID()}`,
    );
  await queue(6_000);
  await database.raw('delete from delivery_queue');
  const walk = await look();
  expect(walk).toMatchObject({ oldest: null });
  await queue(1);
  const found = await look();
  expect(found.oldest).toBeInstanceOf(Date);
  expect(found.touched, `${walk.touched} pages at first`).toBeGreaterThan(50);
  const later = await look();
  expect(later.oldest).toEqual(found.oldest);
  expect(later.touched, `${walk.touched} pages at first`).toBeLessThan(10);
  await queue(6_000);
  await database.raw(
    'delete from delivery_queue where position > (select min(position) from delivery_queue)',
  );
  await look();
  expect(await look()).toEqual(later);
});
