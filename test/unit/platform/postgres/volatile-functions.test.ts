import { globSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { repositoryFile } from '../../deployment/compose-file.ts';

const ROOT = join(import.meta.dirname, '../../../..');

/** Called again for each row: no index ends a walk at what one of them returns. */
const VOLATILE =
  '(?:clock_timestamp|timeofday|random|nextval|pg_sequence_last_value|gen_random_uuid|backlog_due)\\(';

/** SQL that adds a length of time. */
const ADDED = `(?:\\s*[-+]\\s*(?:[^\\s,()]+\\s*\\*\\s*)?(?:interval\\s*'[^']*'|[^\\s,()]+))?`;

/** A comparison of either side with such a call, also with something added to it. An equals sign may be an assignment. */
const COMPARED = [
  new RegExp(`(?:[<>]=?|<>|\\bbetween)\\s*(?:least\\(|greatest\\(|\\()?\\s*${VOLATILE}`, 'i'),
  new RegExp(`${VOLATILE}\\)${ADDED}\\s*(?:[<>]|between\\b)`, 'i'),
];

function volatileComparisons(text: string): string[] {
  return COMPARED.flatMap((pattern) => [...text.matchAll(new RegExp(pattern, 'gi'))].map(([found]) => found));
}

test('no statement compares a column with a volatile function, which keeps an index from ending its walk', () => {
  const files = globSync(['src/**/*.ts', 'src/**/*.sql'], { cwd: ROOT });
  expect(files.length).toBeGreaterThan(300);
  const found = files.flatMap((path) =>
    volatileComparisons(repositoryFile(path)).map((comparison) => `${path}: ${comparison}`),
  );
  expect(found, 'write (select clock_timestamp()), which is called once').toEqual([]);
});

test.each([
  'where next_attempt_at <= clock_timestamp()',
  `where at > clock_timestamp() - interval '1 minute'`,
  'where at < least(clock_timestamp(), now())',
  `where clock_timestamp() - interval '1 minute' > at`,
  'where clock_timestamp() >= at',
  'where at between clock_timestamp() and now()',
  'where position > pg_sequence_last_value(1)',
  'where at > backlog_due(now())',
])('%s is such a comparison', (text) => {
  expect(volatileComparisons(text)).toHaveLength(1);
});

test.each([
  'where next_attempt_at <= (select clock_timestamp())',
  `where at > (select clock_timestamp()) - interval '1 minute'`,
  `set next_at = clock_timestamp() + cast(:ms as float8) * interval '1 millisecond' where at > now()`,
  'extract(epoch from clock_timestamp() - at)',
])('%s is none', (text) => {
  expect(volatileComparisons(text)).toEqual([]);
});
