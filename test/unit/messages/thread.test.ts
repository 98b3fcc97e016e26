import { describe, expect, test } from 'vitest';
import { type ThreadFacts, threadOf } from '../../../src/features/messages/conversations/thread.ts';

const at = (seconds: number) => new Date(1_790_000_000_000 + seconds * 1_000);
const NONE: ThreadFacts = {
  owner: null,
  role: null,
  since: null,
  writtenAt: null,
  copiedAt: null,
  copiedWrittenAt: null,
};
const HOUR = 3_600;

describe('who has a conversation', () => {
  test.each<[string, Partial<ThreadFacts>, object | null]>([
    ['nobody was ever heard of', { writtenAt: at(1) }, null],
    [
      'a copy came',
      { copiedAt: at(1), copiedWrittenAt: at(1) },
      { owner: 'other', role: null, since: at(1) },
    ],
    ['only an echo came', { copiedAt: at(1) }, { owner: 'other', role: null, since: at(1) }],
    [
      'the customer wrote to us after a copy',
      { copiedAt: at(1), writtenAt: at(2) },
      { owner: 'us', role: null, since: at(2) },
    ],
    [
      'the customer wrote to us in the second of a copy',
      { copiedAt: at(1), writtenAt: at(1) },
      { owner: 'us', role: null, since: at(1) },
    ],
    [
      'it was taken in the second of a message to us',
      { owner: 'other', role: 'escalation', since: at(1), writtenAt: at(1) },
      { owner: 'other', role: 'escalation', since: at(1) },
    ],
    [
      'it was passed in the second of a copy',
      { owner: 'us', role: 'escalation', since: at(1), copiedAt: at(1) },
      { owner: 'us', role: 'escalation', since: at(1) },
    ],
    [
      'a copy came after it was passed',
      { owner: 'us', role: 'escalation', since: at(1), copiedAt: at(2) },
      { owner: 'other', role: null, since: at(2) },
    ],
    ['it was released', { owner: 'none', since: at(2), writtenAt: at(1) }, null],
    [
      'the customer wrote after it was released',
      { owner: 'none', since: at(2), writtenAt: at(3) },
      { owner: 'us', role: null, since: at(3) },
    ],
    [
      'reports of one second differ',
      { owner: 'unknown', since: at(2), writtenAt: at(1) },
      { owner: 'unknown', role: null, since: at(2) },
    ],
  ])('%s', (_name, facts, expected) => {
    expect(threadOf({ ...NONE, ...facts }, at(10))).toEqual(expected);
  });

  test('it is idle 24 hours after the customer last wrote, to whomever', () => {
    const passed = {
      ...NONE,
      owner: 'us' as const,
      since: at(10 * HOUR),
      copiedAt: at(0),
      copiedWrittenAt: at(0),
    };
    expect(threadOf(passed, at(24 * HOUR - 1))?.owner).toBe('us');
    expect(threadOf(passed, at(24 * HOUR))).toBe(null);
    const echoed = { ...NONE, copiedWrittenAt: at(0), copiedAt: at(23 * HOUR) };
    expect(threadOf(echoed, at(24 * HOUR))).toBe(null);
    // Nobody can be handed an idle conversation: the customer wrote where we did not see it.
    const late = { ...passed, since: at(30 * HOUR) };
    expect(threadOf(late, at(53 * HOUR))?.owner).toBe('us');
    expect(threadOf(late, at(54 * HOUR))).toBe(null);
  });
});
