import { expect, test } from 'vitest';
import { cpuMsOf } from '../../../support/long-texts.ts';
import { add, admin, endpointsPath, useEndpointBrowser } from './endpoint-browser.ts';

useEndpointBrowser();

/** As many as fit into a form of 64 KiB, and as many fields as a form may have. */
const NAMES = Array.from({ length: 10_000 }, (_, n) => n.toString(36));
const MANY = [
  `newHeaders=${NAMES.map((name) => `${name}:1`).join('\n')}`,
  NAMES.slice(0, 190)
    .map((name) => `removedHeaders=${name}`)
    .join('&'),
];
/** By the square of their number they take longer. */
const MAX_CPU_MS = 1_000;

test('a form with as many headers to set, or to remove, as fit into it is answered at once', async () => {
  const { id } = await add();
  for (const path of [endpointsPath, `${endpointsPath}/${id}/edit`]) {
    for (const many of MANY) {
      await admin.get(`${endpointsPath}/${id}/edit`);
      const body = `_csrf=${admin.token()}&url=https://receiver.example/a&${many}`;
      expect(body.length).toBeLessThan(64 * 1024);
      let status = 0;
      const cpuMs = await cpuMsOf(async () => {
        status = (await admin.post(path, body)).statusCode;
      });
      expect([path, status]).toEqual([path, 400]);
      expect(cpuMs).toBeLessThan(MAX_CPU_MS);
    }
  }
});
