import { describe, expect, test } from 'vitest';
import { passagesOf, passageUrl, readPassages, searchPassages } from '../../../src/mcp/docs-search.ts';

const PASSAGES = readPassages();

const found = (query: string) =>
  searchPassages(PASSAGES, query, 3).map(({ document, headings }) => `${document} ${headings}`);

describe('searchDocs', () => {
  test.each([
    ['how do I check the signature of a webhook', 'Check the signature'],
    ['retry schedule', 'Responses and retries'],
    ['Idempotency-Key', 'Idempotency-Key'],
    ['rate limits 429', 'Rate limits'],
    ['order of events', 'Webhooks › Order'],
  ])('finds %s among the first three', (query, heading) => {
    expect(found(query)).toContainEqual(expect.stringContaining(heading));
  });

  test('finds an error code of the platform in a long table', () => {
    // api.md explains the same code in a sentence.
    expect(searchPassages(PASSAGES, '131047', 2)).toContainEqual(
      expect.objectContaining({
        document: 'upstream-errors.md',
        text: expect.stringContaining('131047'),
      }),
    );
  });

  test('finds nothing for words that are nowhere, and for none', () => {
    expect([found('zyzzogeton'), found(''), found('how do I')]).toEqual([[], [], []]);
  });

  test('the words of a passage are counted once, however often it is asked for', () => {
    let reads = 0;
    const passage = {
      document: 'a.md',
      headings: 'A',
      get text() {
        reads += 1;
        return 'signature of a webhook';
      },
    };
    const passages = [passage];
    expect(searchPassages(passages, 'signature', 1)).toHaveLength(1);
    const afterFirst = reads;
    for (let turn = 0; turn < 5; turn += 1) expect(searchPassages(passages, 'webhook', 1)).toHaveLength(1);
    expect(reads).toBe(afterFirst);
  });

  test('passages are short, and hold every line but headings', () => {
    for (const { text } of PASSAGES) expect(text.length).toBeLessThan(4_000);
    const markdown = [
      '# A',
      'one',
      '## B',
      '```',
      '# no heading',
      '```',
      'x'.repeat(1_790),
      'two'.repeat(9),
    ].join('\n');
    expect(passagesOf('a.md', markdown)).toEqual([
      { document: 'a.md', headings: 'A', text: 'one' },
      { document: 'a.md', headings: 'A › B', text: '```\n# no heading\n```' },
      { document: 'a.md', headings: 'A › B', text: 'x'.repeat(1_790) },
      { document: 'a.md', headings: 'A › B', text: 'two'.repeat(9) },
    ]);
  });
});

test('a passage has the address at which a gateway shows it', () => {
  const url = (document: string, headings: string) =>
    passageUrl('https://gateway.example', { document, headings, text: '' });
  const page = 'https://gateway.example/docs/tenants';
  expect(url('webhooks.md', 'Webhooks › What must I check?')).toBe(`${page}/webhooks#what-must-i-check`);
  expect(url('quick-start/README.md', 'Quick start › 24-hour window')).toBe(
    `${page}/quick-start/#_24-hour-window`,
  );
  expect(url('cloud-api/n8n.md', '')).toBe(`${page}/cloud-api/n8n`);
});
