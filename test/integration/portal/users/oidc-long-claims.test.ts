import { expect, test } from 'vitest';
import { cpuMsOf, LONG_TEXTS } from '../../../support/long-texts.ts';
import { openBrowser } from '../portal-browser.ts';
import { api, invite, PEOPLE, signInAtProvider, useOidcProvider } from './oidc-provider.ts';

useOidcProvider();

/** With that of the provider, which is in this process; by the square of the length it would be several seconds. */
const MAX_CPU_MS = 2_000;

test('a provider that says a name and an address of 100,000 characters costs no time by their square, and gets no error of ours', async () => {
  await invite('long@store.example');
  const said = LONG_TEXTS.flatMap((text) => [
    { email: `${text}@store.example`, email_verified: true, name: 'Asha' },
    { email: 'long@store.example', email_verified: true, name: text },
  ]);
  const statuses = new Set<number>();
  for (const claims of said) {
    PEOPLE.set('long', claims);
    const cpuMs = await cpuMsOf(async () => {
      const { answer } = await signInAtProvider(openBrowser(api.app), 'long');
      statuses.add(answer.statusCode);
    });
    expect(cpuMs).toBeLessThan(MAX_CPU_MS);
  }
  expect([...statuses].filter((status) => status >= 500)).toEqual([]);
});
