import { expect, test } from 'vitest';
import { shownUrl } from '../../../../src/platform/http/outbound-url.ts';

test.each([
  ['https://shop.example/', 'https://shop.example/'],
  ['https://shop.example/hook', 'https://shop.example/***6fc2d0'],
  ['https://shop.example:8443/services/geheim', 'https://shop.example:8443/***94fcb4'],
  ['https://shop.example/?geheim', 'https://shop.example/***bfb848'],
  ['https://user:geheim@shop.example/hook#geheim', 'https://shop.example/***6fc2d0'],
  ['geheim', '(invalid URL)'],
])('of %s only what is no credential is shown', (url, shown) => {
  expect(shownUrl(url)).toBe(shown);
});

test('endpoints of one server are told apart, by too little to confirm a guess', () => {
  const shown = ['a', 'b', 'a?token=1', 'a?token=2'].map((path) => shownUrl(`https://shop.example/${path}`));
  expect(new Set(shown).size).toBe(4);
  for (const url of shown) expect(url).toMatch(/^https:\/\/shop\.example\/\*\*\*[0-9a-f]{6}$/);
});
