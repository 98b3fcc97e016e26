import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** It is shipped with the program. */
const FOLDER = fileURLToPath(new URL('../../docs/tenants', import.meta.url));

export type Passage = { document: string; headings: string; text: string };

const MAX_PASSAGE_CHARS = 1_800;

export function readPassages(folder = FOLDER): Passage[] {
  const documents = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.md'),
  );
  return documents
    .toSorted()
    .flatMap((document) => passagesOf(document, readFileSync(join(folder, document), 'utf8')));
}

/** At its headings, and long parts at the ends of lines. */
export function passagesOf(document: string, markdown: string): Passage[] {
  const passages: Passage[] = [];
  let path: string[] = [];
  let text = '';
  let isCode = false;
  const end = () => {
    if (text.trim() !== '') passages.push({ document, headings: path.join(' › '), text: text.trim() });
    text = '';
  };
  for (const line of markdown.split('\n')) {
    const heading = isCode ? null : /^(#+) (.+)$/.exec(line);
    if (line.startsWith('```')) isCode = !isCode;
    if (heading !== null || text.length + line.length > MAX_PASSAGE_CHARS) end();
    if (heading === null) text += `${line}\n`;
    else path = [...path.slice(0, (heading[1]?.length ?? 1) - 1), heading[2] ?? ''];
  }
  end();
  return passages;
}

/** Where the documentation of a gateway shows a passage. */
export function passageUrl(gatewayUrl: string, { document, headings }: Passage): string {
  const page = document.replace(/(^|\/)README\.md$/, '$1').replace(/\.md$/, '');
  const anchor = anchorOf(headings.split(' › ').at(-1) ?? '');
  return `${gatewayUrl}/docs/tenants/${page}${anchor === '' ? '' : `#${anchor}`}`;
}

/** As VitePress makes anchors of headings. */
function anchorOf(heading: string): string {
  return heading
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[\s~`!@#$%^&*()\-_+=[\]{}|\\;:"'“”‘’<>,.?/]+/g, '-')
    .replaceAll(/^-|-$/g, '')
    .replace(/^(\d)/, '_$1')
    .toLowerCase();
}

/** Weights of BM25: how soon repetitions of a word stop to count, and how much long passages lose. */
const SATURATION = 1.2;
const LENGTH_WEIGHT = 0.75;

/** A word in a heading says more than one in the text. */
const HEADING_WEIGHT = 3;

/** By BM25, the best first. */
export function searchPassages(passages: readonly Passage[], query: string, limit: number): Passage[] {
  const words = [...new Set(wordsOf(query))].filter((word) => !EMPTY_WORDS.has(word));
  const counted = countedWords(passages);
  const averageSize = counted.reduce((sum, { size }) => sum + size, 0) / Math.max(1, counted.length);
  const weights = words.map((word) => {
    const holders = counted.filter(({ counts }) => counts.has(word)).length;
    return [word, Math.log(1 + (counted.length - holders + 0.5) / (holders + 0.5))] as const;
  });
  const scored = counted.map(({ passage, counts, size }) => {
    const length = 1 - LENGTH_WEIGHT + (LENGTH_WEIGHT * size) / averageSize;
    const score = weights.reduce((sum, [word, weight]) => {
      const count = counts.get(word) ?? 0;
      return sum + (weight * count * (SATURATION + 1)) / (count + SATURATION * length);
    }, 0);
    return { passage, score };
  });
  return scored
    .filter(({ score }) => score > 0)
    .toSorted((one, other) => other.score - one.score)
    .slice(0, limit)
    .map(({ passage }) => passage);
}

type Counted = { passage: Passage; counts: Map<string, number>; size: number };

const COUNTED = new WeakMap<readonly Passage[], Counted[]>();

/** Counted with the first query, and not again. */
function countedWords(passages: readonly Passage[]): Counted[] {
  const counted = COUNTED.get(passages) ?? passages.map(countWords);
  COUNTED.set(passages, counted);
  return counted;
}

function countWords(passage: Passage): Counted {
  const counts = new Map<string, number>();
  const add = (text: string, weight: number) => {
    for (const word of wordsOf(text)) counts.set(word, (counts.get(word) ?? 0) + weight);
  };
  add(passage.text, 1);
  add(`${passage.document} ${passage.headings}`, HEADING_WEIGHT);
  return { passage, counts, size: passage.text.length };
}

/** They are in every question and say nothing about its subject. */
const EMPTY_WORDS = new Set(
  'a an and are be can do does for from get how i if in is it my of on or that the to what when which why with you'.split(
    ' ',
  ),
);

/** Words without the endings of plurals, and the parts of names such as `X-Service-Sequence` and `order_details`. */
function wordsOf(text: string): string[] {
  const found = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return found.map((word) => (word.length > 3 ? word.replace(/(?<!s)s$/, '') : word));
}
