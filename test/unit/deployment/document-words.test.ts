import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { repositoryFile } from './compose-file.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** Decisions and the changelog tell of their time, in the words of their time. */
const DOCUMENTS = ['*.md', 'docs/**/*.md', 'clients/*/README.md']
  .flatMap((pattern) => globSync(pattern, { cwd: ROOT }))
  .filter((path) => path !== 'CHANGELOG.md' && !path.startsWith('docs/decisions/'));

/** Pages, commands, refusals and the sandbox, of which only the texts are read. */
const SOURCES = [
  'src/api/portal/**/*.ts',
  'src/api/pages/*.ts',
  'src/features/{endpoints,keys,replays,users}/**/*.ts',
  'dev/**/*.ts',
]
  .flatMap((pattern) => globSync(pattern, { cwd: ROOT }))
  .toSorted();

/** Words that readers do not know from elsewhere, or that hide who acts, with the words to use. */
const AVOIDED: [RegExp, string][] = [
  [/\bg(?:ive|ives|iving|iven|ave)(?: \w+){0,3} back\b/i, 'release, return'],
  [/\bhand(?:s|ed|ing)?(?: \w+){0,2} over\b/i, 'pass, transfer'],
  [/\bset(?:s|ting)?(?: \w+){0,2} aside\b/i, 'quarantine'],
  [/\bseats?\b/i, 'slot'],
  [/\bendpoint books?\b/i, 'endpoint cache'],
  [/\btakes? what is sent\b/i, 'accepts deliveries'],
  [/\bnot taken in\b/i, 'waiting for intake'],
  [/\bheard of\b/i, 'last heartbeat'],
  [/\bwhat for\b/i, 'purpose'],
  [/\banswers\b/i, 'returns, responses, up'],
  [/\b(?:whoever|nobody|somebody|himself|herself)\b/i, 'a noun'],
  [/\b(?:he|she) (?:is|has|can|may|must)\b/i, 'the user'],
];

/** Words of our own that the code has lost; they stay out of its names and comments too. */
const LOST = AVOIDED.slice(
  0,
  AVOIDED.findIndex(([pattern]) => pattern.source.includes('answers')),
);

/** Words that comments are without: their sentences have a subject and the field's verb. */
const AVOIDED_IN_COMMENTS: [RegExp, string][] = [
  [/\btold\b/i, 'notified, reported'],
  [/\bof (?:its|their|our|his|her) own\b/i, 'its own …, separate'],
  [/\b(?:taken|takes|taking|took) in\b|\bto take in\b/i, 'ingest'],
  [/\banew\b/i, 'again'],
  [/\bmend(?:s|ed|ing)?\b/i, 'fix'],
  [/\b(?:whoever|nobody|somebody|himself|herself)\b/i, 'a noun'],
  [/\b(?:he|she) (?:is|has|can|may|must)\b/i, 'the user'],
  [/\bhears? of\b/i, 'learns of'],
];

/** Where comments are read. */
const COMMENTED = globSync('src/**/*.{ts,sql}', { cwd: ROOT }).toSorted();

/** All code. */
const CODE = globSync('{src,dev}/**/*.{ts,sql}', { cwd: ROOT }).toSorted();

/** What else the words mean: a lock's file that is moved, and a delivery that has stepped aside. */
const ALLOWED = /\bsetAside\b(?=\()|\bstepped_aside_at\b/g;

/** What an avoided word stands in, with the words to use instead. */
function findings(text: string, words = AVOIDED): string[] {
  const prose = text.replace(/\s+/g, ' ');
  return words.flatMap(([pattern, instead]) => {
    const match = new RegExp(`.{0,30}(?:${pattern.source}).{0,30}`, 'i').exec(prose);
    return match === null ? [] : [`“${match[0]}”: better ${instead}`];
  });
}

/** Strings of several words, and what stands between tags. */
function textsOf(source: string): string {
  const code = source.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$|^import .*$/gm, '');
  return [...code.matchAll(/'([^'\n]*)'|>([^<>{}$&=;]* [^<>{}$&=;]*)</g)]
    .map(([, text = '', between = '']) => text + between)
    .filter((text) => text.includes(' '))
    .join('\n');
}

/** The comments of a source, without what begins its lines. */
function commentsOf(source: string): string {
  const comments = source.match(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*|^\s*--.*/gm) ?? [];
  return comments.join('\n').replace(/^\s*(?:\/?\*+\/?|--|\/\/)\s?/gm, '');
}

test('the word check finds a word that spans lines', () => {
  expect(findings('The loop gives the\nclaim back.')).toHaveLength(1);
  expect(findings('A claim in `set_aside` is released.')).toEqual([]);
  expect(findings(textsOf("/** Nobody. */ const texts = ['up', 'It answers at once'];"))).toHaveLength(1);
  expect(findings(textsOf('html`<p id="answers">Last heard of</p>`'))).toHaveLength(1);
  const source = "/**\n * Has a pool of\n * its own.\n */\nconst told = 'anew'; // told";
  expect(findings(commentsOf(source), AVOIDED_IN_COMMENTS)).toHaveLength(2);
  expect(DOCUMENTS).toContain('README.md');
  expect(SOURCES.length).toBeGreaterThan(50);
});

test.each(DOCUMENTS)('%s uses the words of the field', (path) => {
  expect(findings(repositoryFile(path))).toEqual([]);
});

test.each(SOURCES)('%s shows the words of the field', (path) => {
  expect(findings(textsOf(repositoryFile(path)))).toEqual([]);
});

test.each(CODE)('%s has the words of the field in its comments, names and SQL', (path) => {
  const prose = repositoryFile(path)
    .replace(/^\s*(?:\*|--|\/\/)\s?/gm, '')
    .replace(ALLOWED, '');
  const names = prose.replace(/([a-z])([A-Z])/g, '$1 $2').replaceAll('_', ' ');
  expect(findings(names, LOST)).toEqual([]);
});

test.each(COMMENTED)('%s has comments with a subject and the verbs of the field', (path) => {
  expect(findings(commentsOf(repositoryFile(path)), AVOIDED_IN_COMMENTS)).toEqual([]);
});

/** A comment that names its subject only as "what". */
const SUBJECTLESS = /^\s*(?:\/\*\*?|\*|\/\/)\s*What /m;

test('comments of the engine and of ingest name their subjects', () => {
  const files = COMMENTED.filter((path) => /^src\/(?:engine|ingest)\//.test(path));
  expect(files.length).toBeGreaterThan(100);
  expect(SUBJECTLESS.test('/** What is queued. */')).toBe(true);
  expect(files.filter((path) => SUBJECTLESS.test(repositoryFile(path)))).toEqual([]);
});
