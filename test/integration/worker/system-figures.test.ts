import { expect, test, vi } from 'vitest';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { readSystemFigures } from '../../../src/worker/metrics/system-figures.ts';
import { testDatabase } from '../../support/test-database.ts';

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
