import { describe, expect, test } from 'vitest';
import { checkDeliveries } from '../../../bench/report/delivery-check.ts';
import { type Arrival, addressOf, eventIdOf, type RunPlan } from '../../../bench/run-plan.ts';

const RUN = 7;
const TARGET = { wabaId: '1', phoneNumberId: '2' };

function plan(over: Partial<RunPlan> = {}): RunPlan {
  return {
    run: RUN,
    body: 'message',
    count: 3,
    ratePerSecond: 10,
    concurrency: 1,
    targets: [TARGET],
    ...over,
  };
}

const allAcknowledged = (count: number) => ({ status: Uint16Array.from({ length: count }, () => 200) });

let webhooks = 0;
function arrival(n: number, over: Partial<Arrival> = {}): Arrival {
  webhooks += 1;
  const eventId = eventIdOf(RUN, n);
  return {
    endpoint: 0,
    webhookId: `w${webhooks}`,
    eventId,
    status: '',
    sequence: 1,
    attempt: 1,
    arrivedMs: n,
    accepted: true,
    ...over,
  };
}

const status = (name: string, sequence: number, over: Partial<Arrival> = {}) =>
  arrival(0, { status: name, sequence, ...over });

describe('the check of what arrived', () => {
  test('finds nothing wrong when each acknowledged event came once', () => {
    const check = checkDeliveries(plan(), allAcknowledged(3), [arrival(1), arrival(0), arrival(2)]);
    expect(check).toMatchObject({ missing: 0, duplicates: 0, orderViolations: 0 });
    expect(check.first.map(({ n }) => n)).toEqual([1, 0, 2]);
  });

  test('counts acknowledged events that did not come, and no others', () => {
    const status = Uint16Array.from([200, 200, 503]);
    expect(checkDeliveries(plan(), { status }, [arrival(0)]).missing).toBe(1);
    expect(checkDeliveries(plan(), { status }, [arrival(0), arrival(2)]).missing).toBe(1);
  });

  test('counts each status of a body as an event of its own', () => {
    const arrivals = [status('sent', 1), status('read', 3)];
    expect(checkDeliveries(plan({ body: 'statuses', count: 1 }), allAcknowledged(1), arrivals)).toMatchObject(
      { missing: 1, orderViolations: 0 },
    );
  });

  test('a repeated webhook is a duplicate and makes up for no missing one', () => {
    const once = arrival(0);
    const check = checkDeliveries(plan(), allAcknowledged(3), [once, once, { ...once, attempt: 2 }]);
    expect(check).toMatchObject({ missing: 2, duplicates: 2, retriedDuplicates: 1 });
    expect(check.first).toHaveLength(1);
  });

  test('the same webhook at two endpoints is no duplicate', () => {
    const one = arrival(0);
    expect(checkDeliveries(plan(), allAcknowledged(3), [one, { ...one, endpoint: 1 }]).duplicates).toBe(0);
  });

  test('counts what comes after a later one of its key, by sequence', () => {
    const arrivals = [status('sent', 1), status('read', 3), status('delivered', 2)];
    const statuses = plan({ body: 'statuses', count: 1 });
    expect(checkDeliveries(statuses, allAcknowledged(1), arrivals).orderViolations).toBe(1);
  });

  test("counts statuses against upstream's order, even when the sequence numbers agree with the arrival", () => {
    const arrivals = [status('delivered', 1), status('sent', 2), status('read', 3)];
    const statuses = plan({ body: 'statuses', count: 1 });
    expect(checkDeliveries(statuses, allAcknowledged(1), arrivals).orderViolations).toBe(1);
  });

  test('a duplicate that comes late is no violation of order', () => {
    const sent = status('sent', 1);
    const arrivals = [sent, status('delivered', 2), status('read', 3), sent];
    const statuses = plan({ body: 'statuses', count: 1 });
    expect(checkDeliveries(statuses, allAcknowledged(1), arrivals)).toMatchObject({
      missing: 0,
      duplicates: 1,
      orderViolations: 0,
    });
  });

  test('keys of different endpoints do not disturb each other', () => {
    const arrivals = [status('sent', 9, { endpoint: 0 }), status('sent', 1, { endpoint: 1 })];
    const statuses = plan({ body: 'statuses', count: 1 });
    expect(checkDeliveries(statuses, allAcknowledged(1), arrivals).orderViolations).toBe(0);
  });

  test('leaves out what belongs to another run', () => {
    const other = arrival(0, { eventId: eventIdOf(RUN + 1, 0) });
    const check = checkDeliveries(plan(), allAcknowledged(3), [other]);
    expect(check).toMatchObject({ missing: 3, duplicates: 0 });
    expect(check.first).toEqual([]);
  });

  test('what the receiver refused has not come; how long after that it came is noted', () => {
    const refused = arrival(0, { accepted: false, arrivedMs: 10 });
    const retried = { ...refused, accepted: true, attempt: 2, arrivedMs: 5_010 };
    const one = plan({ count: 1 });
    expect(checkDeliveries(one, allAcknowledged(1), [refused]).missing).toBe(1);
    expect(checkDeliveries(one, allAcknowledged(1), [refused, retried])).toMatchObject({
      missing: 0,
      duplicates: 0,
      retriedAfterMs: [5_000],
      first: [{ n: 0, arrivedMs: 5_010 }],
    });
  });
});

test('a customer always writes to the same target, and all targets get a share', () => {
  const targets = Array.from({ length: 100 }, (_, n) => ({ wabaId: `${n}`, phoneNumberId: `${n}` }));
  const targetOf = new Map<number, number>();
  for (let n = 0; n < 5_000; n += 1) {
    const { customer, target } = addressOf(plan({ targets, count: 5_000 }), n);
    expect(targetOf.get(customer) ?? target).toBe(target);
    targetOf.set(customer, target);
  }
  expect(targetOf.size).toBeGreaterThan(450);
  expect(new Set(targetOf.values()).size).toBe(100);
});
