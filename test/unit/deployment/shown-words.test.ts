import { expect, test } from 'vitest';
import {
  alertReasons,
  alertTexts,
  commandTexts,
  errorTexts,
  logTexts,
  logTextsOf,
  operationTexts,
  refusals,
  type ShownText,
  settingTexts,
} from './shown-texts.ts';

/**
 * Phrases that a reader has to translate, with the words to use: a sentence has a verb and an object, and the standard
 * words of the field.
 */
const PHRASES: [RegExp, string][] = [
  [/\bwhat\b(?! (?:happens|to do))/i, 'the noun'],
  [/\bof (?:its|their|your|our|his) own\b/i, 'separate, its'],
  [/\banew\b/i, 'again'],
  [/\bmend(?:s|ed|ing)?\b/i, 'fix'],
  [/\b(?:told|tells?|telling)\b/i, 'notify, report, show'],
  [/\btak(?:e|es|en|ing)(?: \w+)? in\b|\btook in\b/i, 'ingest'],
  [/\btak(?:e|es|en|ing)(?: \w+){0,2} away\b/i, 'remove'],
  [/(?:^|[.:;] )take (?:an?|the|ids?|one)\b/i, 'use'],
  [/\bfor good\b/i, 'permanently'],
  [/\bunder way\b/i, 'in progress'],
  [/\bgo(?:es|ing)? on\b|\bwent on\b/i, 'continue, persist'],
  [/\b(?:is|are|was|were) not known\b/i, 'unknown, could not check'],
  [/\bnot (?:looked at|noted)\b/i, 'not checked, not recorded'],
  [/\bso (?:it|they) (?:is|are|does|do)\b/i, 'the default'],
  [/\bas (?:many|much) .{1,40} as (?:it|they|you) may\b/i, 'has reached its limit'],
  [/\b(?:none|nothing|not|nobody) any more\b|\bno more of\b/i, 'no longer'],
  [/\banswered? (?:with|by|\d)/i, 'returned'],
  [/\b(?:bring|brings|brought) (?:\w+ ){0,2}back\b/i, 'restore'],
  [/\bcut off\b/i, 'interrupted'],
  [/\bthe right one\b|\bas it came\b|\bas it copes\b/i, 'correct, unchanged, adaptive'],
  [/\bbehaves? so\b|\bsays? so\b/i, 'the verb'],
  [/\bbeside\b/i, 'in addition to, except'],
  [/^yes, /i, 'confirm'],
  [/\bthe (?:server|ones?|secret|page) before\b/i, 'previous'],
];

function findings(texts: readonly ShownText[]): string[] {
  return texts.flatMap(({ place, text }) =>
    PHRASES.flatMap(([pattern, instead]) => {
      const match = pattern.exec(text);
      return match === null ? [] : [`${place}: “${text}” has “${match[0]}”: better ${instead}`];
    }),
  );
}

test('the phrase check finds phrases that were replaced, also in a log message of several lines', () => {
  const replaced = [
    'Nothing was sent: send it again when the cause is mended.',
    'take a WABA away: its keys, its token, and its endpoints with what waits',
    'The request that brought this Idempotency-Key is still under way.',
    'only look; so it does without --fix',
    'Take a phoneNumberId of GET /me.',
    'bodies are kept first and taken in then',
  ];
  for (const text of replaced) expect(findings([{ place: 'a', text }]), text).not.toEqual([]);
  const source =
    'tools.logger.warn(\n  { err, step },\n  found > 0 ? `rows made anew: ` : "all is well",\n);';
  expect(findings(logTextsOf(source, 'a'))).toHaveLength(1);
  expect(findings([{ place: 'a', text: 'The endpoint has pending deliveries.' }])).toEqual([]);
});

test.each<[string, () => ShownText[], number]>([
  ['the help of the commands', commandTexts, 300],
  ['the REST descriptions', operationTexts, 200],
  ['the error catalogue', errorTexts, 100],
  ['the alerts and their runbooks', alertTexts, 60],
  ['the reasons of alerts', alertReasons, 10],
  ['the log messages', logTexts, 60],
  ['the settings', settingTexts, 60],
  ['the refusals', refusals, 150],
])('%s has the words of the field', (_, gather, least) => {
  const texts = gather().filter(({ text }) => text !== '');
  expect(texts.length).toBeGreaterThan(least);
  expect([...new Set(findings(texts))]).toEqual([]);
});
