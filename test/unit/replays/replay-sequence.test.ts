import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { laneOf } from '../../../src/engine/deliveries/lanes.ts';
import { inLaneOrder, replayLane } from '../../../src/features/replays/replay-steps.ts';

describe('the order within a replay', () => {
  test('the events of a lane follow their sequence, and each lane keeps its places', () => {
    const event = fc.record({ lane: fc.constantFrom('a', 'b', 'c'), sequence: fc.nat(30).map(String) });
    fc.assert(
      fc.property(fc.array(event), (events) => {
        const ordered = inLaneOrder(events);
        expect(ordered.map(({ lane }) => lane)).toEqual(events.map(({ lane }) => lane));
        for (const name of ['a', 'b', 'c']) {
          const numbers = (of: typeof events) =>
            of.filter(({ lane }) => lane === name).map(({ sequence }) => Number(sequence));
          expect(numbers(ordered)).toEqual(numbers(events).sort((a, b) => a - b));
        }
      }),
    );
  });

  test('sequences beyond 2^53 are told apart', () => {
    const events = ['9007199254740993', '9007199254740992'].map((sequence) => ({ lane: 'a', sequence }));
    expect(inLaneOrder(events).map(({ sequence }) => sequence)).toEqual([
      '9007199254740992',
      '9007199254740993',
    ]);
  });
});

describe('the lane of a replay', () => {
  test('is apart from live lanes and other replays, one for one, and fits an index', () => {
    const key = fc.oneof(fc.string({ maxLength: 300, unit: 'grapheme' }), fc.constant('sha256:x'));
    fc.assert(
      fc.property(key, key, (first, second) => {
        const lane = (id: string, of: string) =>
          replayLane(id, 'event', { lane: laneOf(of), conversationId: null });
        expect(lane('7', first)).toMatch(/^replay\/7\//);
        expect(Buffer.byteLength(lane('9223372036854775807', first))).toBeLessThanOrEqual(300);
        expect(lane('7', first) === lane('7', second)).toBe(laneOf(first) === laneOf(second));
        expect(lane('7', first)).not.toBe(lane('71', first));
      }),
    );
  });

  test('follows the order scope of the endpoint; without a conversation the key decides', () => {
    const event = { lane: 'wamid.1', conversationId: '42' };
    expect(replayLane('7', 'event', event)).toBe('replay/7/wamid.1');
    expect(replayLane('7', 'conversation', event)).toBe('replay/7/conversation/42');
    expect(replayLane('7', 'conversation', { ...event, conversationId: null })).toBe('replay/7/wamid.1');
    expect(replayLane('7', 'endpoint', event)).toBe('replay/7/endpoint');
  });
});
