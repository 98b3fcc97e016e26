import { expect, test } from 'vitest';
import { shownUrl } from '../../../../src/platform/http/outbound-url.ts';

test.each([
  ['https://shop.example/hook', 'https://shop.example/hook'],
  ['https://shop.example:8443/a/b?token=geheim&x=', 'https://shop.example:8443/a/b?token=***&x=***'],
  ['https://shop.example/?geheim', 'https://shop.example/?***'],
  ['https://shop.example/?=geheim&', 'https://shop.example/?***&***'],
  ['https://user:geheim@shop.example/hook#geheim', 'https://shop.example/hook'],
  ['geheim', '(invalid URL)'],
])('of %s only what is no credential is shown', (url, shown) => {
  expect(shownUrl(url)).toBe(shown);
});
