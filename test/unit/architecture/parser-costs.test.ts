import cookie from '@fastify/cookie';
import fc from 'fast-check';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ExternalApp } from '../../../src/api/external/external-app.ts';
import { readPassedBodies } from '../../../src/api/graph/pass-bodies.ts';
import { verifyUpstreamSignature } from '../../../src/api/inbound/upstream-webhook.ts';
import {
  contentDisposition,
  parseByteRange,
} from '../../../src/api/messages/received-media/received-media.ts';
import { checkFilter } from '../../../src/engine/endpoint/event-filter.ts';
import { uploadedFileName } from '../../../src/features/messages/send/uploaded-media.ts';
import { readFormText } from '../../../src/platform/http/form-text.ts';
import { unreadableBody, utf8Text } from '../../../src/platform/http/utf8-text.ts';
import { parseJson } from '../../../src/platform/json/json-text.ts';
import { hasMoreValues, MAX_VALUES } from '../../../src/platform/json/json-values.ts';
import { phoneForUpstream, readPhoneNumber } from '../../../src/platform/phone-number.ts';
import { storableProblem } from '../../../src/platform/schema/problems.ts';
import { leastCpuMs } from '../../support/cpu-budget.ts';

/**
 * Every parser of bytes from outside × texts that are grown from its own words: it takes time in proportion to the
 * length. `npm run fuzz` tries many more; the seed makes a failure come again.
 */
const RUNS = Number(process.env.FUZZ_TEXTS ?? 25);
const SEED = Number(process.env.FUZZ_SEED ?? 34);

const KIB = 1024;
const LENGTH = 64 * KIB;
/** What takes time by the square of the length is above it by far, what takes it in proportion far below. */
const MAX_CPU_MS_PER_KIB = 0.5;

/** In a text, each becomes another number. */
const COUNTER = '#';
const ANYWHERE = [
  'a',
  '0',
  ' ',
  '\t',
  '\r\n',
  '\0',
  'é',
  '\u202e',
  '😀',
  '\ud800',
  '"',
  '\\',
  '=',
  ';',
  ',',
  COUNTER,
];

type Parser = { words: string[]; parse(text: string): unknown };

/** What it says of a wrong text is part of the work. */
function tried(parse: () => unknown): void {
  try {
    parse();
  } catch {
    // Refusing a text is right.
  }
}

const JSON_WORDS = [
  '{',
  '}',
  '[',
  ']',
  ':',
  '{"a":',
  '[0,',
  '"#":0,',
  '""',
  '\\u0000',
  '\\ud800',
  '1e9',
  'null',
  '-',
];
const JSON_VALUES = [
  '0,',
  '1e9,',
  '{},',
  '"",',
  '{"#":0},',
  '[[0]],',
  '"\\\\u0000",',
  '"é",',
  '{"a":{"a":[]}},',
  ' ',
  '\n',
];
const MULTIPART_TYPE = 'multipart/form-data; boundary=XX';

/** As a body is read: counted, parsed, looked at. */
function readJson(text: string): void {
  tried(() => hasMoreValues(text, MAX_VALUES) || storableProblem(JSON.parse(text)));
}

function scanned(text: string): void {
  tried(() => parseJson(text, { deepNodes: 'mark' }));
}

let app: FastifyInstance;
beforeAll(async () => {
  app = Fastify({ bodyLimit: LENGTH * 8 });
  readPassedBodies(app as unknown as ExternalApp, LENGTH * 8);
  await app.register(cookie);
  app.get('/', async ({ cookies }) => Object.keys(cookies).length);
  app.post('/', async () => null);
  await app.ready();
});
afterAll(() => app.close());

const PARSERS: Record<string, Parser> = {
  'JSON of bodies': { words: [...JSON_WORDS, ...ANYWHERE], parse: readJson },
  'JSON of bodies, well-formed': { words: JSON_VALUES, parse: (text) => readJson(`[${text}0]`) },
  'JSON of webhooks': { words: [...JSON_WORDS, ...ANYWHERE], parse: scanned },
  'JSON of webhooks, well-formed': { words: JSON_VALUES, parse: (text) => scanned(`[${text}0]`) },
  'forms of fields': {
    words: ['&', '=', '+', '%', '%4', '%41', '%ff', '%c3%a9', '&a', '&#', '&a=b', ...ANYWHERE],
    parse: (text) => readFormText(Buffer.from(text), 200),
  },
  'forms with files': {
    words: [
      '--XX',
      '--XX--',
      '\r\n',
      '\r\n\r\n',
      '--',
      'Content-Disposition: form-data; name="#"',
      '; filename="a"',
      ...ANYWHERE,
    ],
    parse: async (text) =>
      await app.inject({
        method: 'POST',
        url: '/',
        headers: { 'content-type': MULTIPART_TYPE },
        payload: text,
      }),
  },
  'the types of forms with files': {
    words: ['multipart/form-data', ';boundary=', 'boundary', 'charset=', ';charset="', ':', ...ANYWHERE],
    parse: (text) => unreadableBody({ 'content-type': text, 'content-encoding': text }),
  },
  'bytes of text': {
    words: ['\ufeff', '\ufffd', ...ANYWHERE],
    parse: (text) => utf8Text(Buffer.from(text, 'latin1')),
  },
  'content filters': {
    words: ['$', '.a', '["', '"]', '[0]', '[#]', ' in ', ' equals ', 'not ', ' exists'],
    parse: (text) => tried(() => checkFilter([text])),
  },
  'signatures of webhooks': {
    words: ['sha256=', 'sha256=0', 'sha1=', 'f', ...ANYWHERE],
    parse: (text) => verifyUpstreamSignature(Buffer.from(text), text, ['secret']),
  },
  'phone numbers': {
    words: [
      '+',
      '(0)',
      '(',
      ')',
      '-',
      '/',
      '.00',
      'tel:',
      '\u0660',
      '\u200b',
      '\u2212',
      '\uff10',
      '00',
      ...ANYWHERE,
    ],
    parse: (text) => [readPhoneNumber(text), phoneForUpstream(text)],
  },
  'ranges of files': {
    words: ['bytes=', '-', '0-', ',', ...ANYWHERE],
    parse: (text) => parseByteRange(text, 1_000),
  },
  cookies: {
    words: ['a=', '; ', 's:', '%', '%41', '; #=', ...ANYWHERE],
    parse: async (text) => await app.inject({ url: '/', headers: { cookie: text } }),
  },
  'names of files': {
    words: [
      '=?utf-8?b?',
      '=?utf-8?q?',
      '?=',
      '?',
      '=?',
      '%22',
      '%0a',
      '%e9',
      '/',
      '..',
      '*',
      '\u2028',
      ...ANYWHERE,
    ],
    parse: (text) => [uploadedFileName(text), contentDisposition(text, text)],
  },
};

/** A beginning, what is repeated until the text is long, and an end. */
type Recipe = readonly [before: string, pumps: readonly string[], after: string];

function recipesOf(words: readonly string[]): fc.Arbitrary<Recipe> {
  const part = fc
    .array(fc.constantFrom(...words), { minLength: 1, maxLength: 4 })
    .map((found) => found.join(''));
  return fc.tuple(part, fc.array(part, { minLength: 1, maxLength: 3 }), part);
}

function textOf([before, pumps, after]: Recipe): string {
  const room = LENGTH / pumps.length;
  const middle = pumps.map((pump) => pump.repeat(Math.ceil(room / pump.length)));
  let count = 0;
  const numbered = (text: string) => text.replaceAll(COUNTER, () => (count++).toString(36));
  return numbered(`${before}${middle.join('')}${after}`);
}

test.each(Object.entries(PARSERS))('%s: time in proportion to the length', async (_, { words, parse }) => {
  await fc.assert(
    fc.asyncProperty(recipesOf(words), async (recipe) => {
      const text = textOf(recipe);
      const budgetMs = (MAX_CPU_MS_PER_KIB * text.length) / KIB;
      expect(await leastCpuMs(async () => await parse(text), budgetMs)).toBeLessThanOrEqual(budgetMs);
    }),
    { numRuns: RUNS, seed: SEED },
  );
});

test('what takes time by the square of the length is found', async () => {
  const quadratic = (text: string) => text.replace(/a+b/g, '');
  const text = 'a'.repeat(4 * KIB);
  const budgetMs = (MAX_CPU_MS_PER_KIB * text.length) / KIB;
  expect(await leastCpuMs(async () => quadratic(text), budgetMs)).toBeGreaterThan(budgetMs);
});
