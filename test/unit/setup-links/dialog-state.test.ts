import fc from 'fast-check';
import { expect, test } from 'vitest';
import { dialogState, linkOfState } from '../../../src/features/setup-links/dialog-state.ts';

const KEY = Buffer.alloc(32, 7);
const AT_MS = Date.parse('2026-11-20T10:00:00Z');
const HOUR_MS = 3_600_000;
const own = { id: '17', nonce: 'n'.repeat(43) };
const state = dialogState(KEY, own, AT_MS);
const ofBrowser = (nonce: string | undefined) => () => nonce;

test('a state is good in the browser that began, for an hour', () => {
  expect(linkOfState(KEY, state, ofBrowser(own.nonce), AT_MS)).toEqual(own);
  expect(linkOfState(KEY, state, ofBrowser(own.nonce), AT_MS + HOUR_MS)).toEqual(own);
  expect(linkOfState(KEY, state, ofBrowser(own.nonce), AT_MS + HOUR_MS + 1)).toBeNull();
  expect(linkOfState(KEY, state, ofBrowser(own.nonce), AT_MS - HOUR_MS - 1)).toBeNull();
});

test('it is none in another browser, with another key, or with no cookie', () => {
  for (const nonce of ['', undefined, 'm'.repeat(43)]) {
    expect(linkOfState(KEY, state, ofBrowser(nonce), AT_MS)).toBeNull();
  }
  expect(linkOfState(Buffer.alloc(32, 8), state, ofBrowser(own.nonce), AT_MS)).toBeNull();
});

test('a state of which one character is another is none', () => {
  const character = fc.constantFrom(...'ABCXYZabcxyz0189-_.');
  fc.assert(
    fc.property(fc.nat(state.length - 1), character, (at, other) => {
      fc.pre(state[at] !== other);
      const forged = `${state.slice(0, at)}${other}${state.slice(at + 1)}`;
      expect(linkOfState(KEY, forged, ofBrowser(own.nonce), AT_MS)).toBeNull();
    }),
    { numRuns: 500 },
  );
});

test('the cookie is asked for by the link of the state: two links side by side have two', () => {
  const nonces: Record<string, string> = { 17: own.nonce, 18: 'm'.repeat(43) };
  const other = dialogState(KEY, { id: '18', nonce: 'm'.repeat(43) }, AT_MS);
  expect(linkOfState(KEY, state, (id) => nonces[id], AT_MS)?.id).toBe('17');
  expect(linkOfState(KEY, other, (id) => nonces[id], AT_MS)?.id).toBe('18');
});

test('what is no state at all is none', () => {
  for (const text of ['', '.', '17', `17.${AT_MS}.`, `0.${AT_MS}.${'a'.repeat(43)}`, 'x'.repeat(5_000)]) {
    expect(linkOfState(KEY, text, ofBrowser(own.nonce), AT_MS)).toBeNull();
  }
});
