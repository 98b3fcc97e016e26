import { describe, expect, test } from 'vitest';
import { drillAccounts } from '../../drill/accounts.ts';
import { bodyStream } from '../../drill/body-stream.ts';
import { nemesisPlan, temporalSteps } from '../../drill/nemesis-plan.ts';
import { contentOf } from '../../drill/webhook-content.ts';

const account = { wabaId: '910000000000000', phoneNumberId: '810000000000000', displayPhoneNumber: '1202' };

function firstBodies(seed: number, count: number) {
  const next = bodyStream(account, seed);
  return Array.from({ length: count }, next);
}

describe('what a drill draws from its seed', () => {
  test('the plan has as many kills as asked for, pauses on top, and is the same for the same seed', () => {
    const options = { seed: 5, kills: 100, leaseMs: 3_000, processes: 'two' as const };
    const plan = nemesisPlan(options);
    expect(plan).toEqual(nemesisPlan(options));
    expect(plan).not.toEqual(nemesisPlan({ ...options, seed: 6 }));
    const pauses = plan.filter(({ deed }) => deed === 'pause');
    expect(plan.length - pauses.length).toBe(100);
    expect(pauses.length).toBe(25);
    expect(Math.min(...pauses.map(({ awayMs }) => awayMs))).toBeGreaterThan(3_000);
    expect(new Set(plan.map(({ target }) => target)).size).toBe(6);
    const inOne = nemesisPlan({ ...options, processes: 'one' }).map(({ target }) => target);
    expect(inOne).toEqual(
      plan.map(({ target }) => (target === 'api' || target === 'worker-1' ? 'all' : target)),
    );
  });

  test('Temporal is away for as much of the time as asked for, frozen and killed, the same for the same seed', () => {
    const firstOf = (awayPercent: number) => {
      const steps = temporalSteps({ seed: 5, awayPercent });
      return Array.from({ length: 100 }, () => steps.next().value);
    };
    const steps = firstOf(80);
    expect(steps).toEqual(firstOf(80));
    const awayMs = steps.reduce((sum, step) => sum + step.awayMs, 0);
    const overallMs = steps.reduce((sum, step) => sum + step.awayMs + step.afterMs, 0);
    expect(awayMs / overallMs).toBeCloseTo(0.8, 2);
    expect(new Set(steps.map(({ deed }) => deed))).toEqual(new Set(['pause', 'kill']));
  });

  test('the bodies are the same for the same seed, and no event occurs twice in them', () => {
    const bodies = firstBodies(3, 400);
    const bytes = bodies.map((body) => body.bytes.toString());
    expect(bytes).toEqual(firstBodies(3, 400).map((body) => body.bytes.toString()));
    const identities = bodies.flatMap(({ events }) => events.map(({ identity }) => identity));
    expect(new Set(identities).size).toBe(identities.length);
    const types = new Set(bodies.flatMap(({ events }) => events.map(({ eventType }) => eventType)));
    expect([...types].sort()).toEqual(['media.ready', 'message', 'order', 'payment', 'status']);
  });

  test('a ladder that is split over bodies keeps its order', () => {
    const rank = new Map<string, number>();
    for (const { identity, key, eventType } of firstBodies(4, 400).flatMap(({ events }) => events)) {
      if (eventType !== 'status') continue;
      const now = ['sent', 'delivered', 'read'].indexOf(identity.split(' ')[2] ?? '');
      expect(now).toBe((rank.get(key) ?? -1) + 1);
      rank.set(key, now);
    }
  });

  test('some WABAs have one endpoint and some two, and ten endpoints have every kind', () => {
    const accounts = drillAccounts(10);
    expect(accounts.map(({ endpoints }) => endpoints.length)).toEqual([1, 2, 1, 2, 1, 2, 1]);
    const endpoints = accounts.flatMap((one) => one.endpoints);
    expect(endpoints.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(new Set(endpoints.map(({ kind }) => kind)).size).toBe(9);
  });

  test('a webhook that is no event of a drill is told as such', () => {
    expect(contentOf(Buffer.from('{'))).toBeNull();
    expect(contentOf(Buffer.from('{"eventType":"test","data":{}}'))).toBeNull();
  });
});
