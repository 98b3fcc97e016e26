import { expect, test } from 'vitest';
import { splitByWaba } from '../../../src/ingest/intake/store-bodies.ts';
import { splitUpstreamBody } from '../../../src/ingest/split/upstream-items.ts';
import { fixtureBody, fixtureNames } from '../../support/upstream-fixtures.ts';

const json = (value: unknown) => Buffer.from(JSON.stringify(value));
const changes = [{ field: 'messages', value: { text: 'the "changes": of 5 €' } }];
const pathless = (body: Buffer) => splitUpstreamBody(body).items.map((item) => ({ ...item, path: '' }));

test('a body of one WABA stays as it is, byte for byte, and says whose it is', () => {
  for (const name of fixtureNames()) {
    const body = fixtureBody(name);
    const parts = splitByWaba(body);
    if (name === 'batch_multi_entry_two_wabas') continue;
    expect([name, parts.length, parts[0]?.body === body]).toEqual([name, 1, true]);
    const wabaIds = new Set(splitUpstreamBody(body).items.map(({ wabaId }) => wabaId));
    for (const wabaId of wabaIds) expect([name, parts[0]?.wabaId]).toEqual([name, wabaId]);
  }
});

test('a body of several WABAs becomes one for each, with the entries of each as they were written', () => {
  const body = fixtureBody('batch_multi_entry_two_wabas');
  const parts = splitByWaba(body);
  expect(parts.map(({ wabaId }) => wabaId)).toEqual(['900000000000101', '900000000000202']);
  expect(parts.flatMap((part) => pathless(part.body))).toEqual(pathless(body));
  const entry = [
    { id: '1', changes },
    { id: 2, changes: [{ n: 1 }] },
    { id: '1', changes: [{ n: 2 }] },
  ];
  const [one, two] = splitByWaba(json({ object: 'x', entry, more: true }));
  expect(JSON.parse(String(one?.body))).toEqual({ object: 'x', entry: [entry[0], entry[2]], more: true });
  expect([two?.wabaId, JSON.parse(String(two?.body)).entry]).toEqual(['2', [entry[1]]]);
});

test('what cannot be read, or does not say whose it is, stays as it is', () => {
  const bodies = [
    Buffer.alloc(0),
    Buffer.from([0, 255]),
    Buffer.from('{"object":"x","entry":[{"id":"1","ch'),
  ];
  for (const body of [
    ...bodies,
    json([]),
    json({ entry: 5 }),
    json({ entry: [] }),
    json({ entry: [{ changes }] }),
  ])
    expect(splitByWaba(body)).toEqual([{ wabaId: null, body }]);
});

test('another order of members, spaces and a second entry of the same WABA are read as well', () => {
  expect(splitByWaba(json({ entry: [{ changes, id: '7' }], object: 'x' }))[0]?.wabaId).toBe('7');
  const spaced = Buffer.from(JSON.stringify({ object: 'x', entry: [{ id: '7', changes }] }, null, 2));
  expect(splitByWaba(spaced)).toEqual([{ wabaId: '7', body: spaced }]);
  const twice = json({
    object: 'x',
    entry: [
      { id: '7', changes },
      { changes, id: '7' },
    ],
  });
  expect(splitByWaba(twice)).toEqual([{ wabaId: '7', body: twice }]);
});

test('however many WABAs a body names, its parts are not much more than the body itself', () => {
  const entry = Array.from({ length: 20_000 }, (_, n) => ({ id: String(n) }));
  const body = json({ before: 'x'.repeat(1024 * 1024), object: 'x', entry, after: 'x'.repeat(1024 * 1024) });
  const parts = splitByWaba(body);
  expect(parts.length).toBe(entry.length);
  expect(parts.reduce((sum, part) => sum + part.body.length, 0)).toBeLessThan(2 * body.length);
  const [first, second] = parts.map((part) => JSON.parse(String(part.body)));
  expect(first).toMatchObject({ ...JSON.parse(String(body)), entry: [{ id: '0' }] });
  expect(second).toEqual({ entry: [{ id: '1' }] });
});
