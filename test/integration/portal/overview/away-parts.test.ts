import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openObjectStore } from '../../../../src/platform/object-store/object-store.ts';
import { openTemporalConnection } from '../../../../src/platform/temporal/client-connection.ts';
import { eventually } from '../../../support/webhook-receiver.ts';
import { startTestApi, testConfig, WABA } from '../../api/api-harness.ts';
import { markupProblems } from '../markup-problems.ts';
import { addUser, type PortalBrowser, tenantOf } from '../portal-browser.ts';

const downStore = openObjectStore({ ...testConfig().objectStore, url: 'http://127.0.0.1:1' });
const closing: (() => unknown)[] = [() => downStore.close()];
let temporal: ReturnType<typeof openTemporalConnection>;

beforeAll(() => {
  const { temporalAddress: address } = inject('infrastructure');
  temporal = openTemporalConnection({ temporal: { ...testConfig().temporal, address } });
  closing.push(() => temporal.close());
});
afterAll(async () => {
  for (const close of closing) await close();
});

/** The notices of the overview. */
async function noticesOf(browser: PortalBrowser): Promise<string[]> {
  const { body } = await browser.get(`/portal/w/${WABA}`);
  expect(await markupProblems(body)).toEqual([]);
  return [...body.matchAll(/<div class="notice warning"[^>]*>(.*?)<\/div>/g)].map(([, text = '']) =>
    text.replaceAll(/<[^>]*>/g, ''),
  );
}

test.each([
  [
    'Temporal and the object store',
    'Warning: Temporal and the object store are away: messages that you send, files and replays wait until they are back, webhooks go on.',
    () => ({ probeStore: downStore }),
  ],
  [
    'Temporal',
    'Warning: Temporal is away: messages that you send, files and replays wait until it is back, webhooks go on.',
    () => ({}),
  ],
  [
    'the object store',
    'Warning: The object store is away: files of messages wait until it is back, all else goes on.',
    () => ({ probeStore: downStore, temporal }),
  ],
  ['nothing', null, () => ({ temporal })],
])('while %s is away, the overview of a tenant says what waits', async (_name, sentence, parts) => {
  // Without a connection of its own, the API of a test knows no Temporal that listens.
  const api = await startTestApi(async () => parts());
  const tenantId = await tenantOf(api.database, WABA);
  const member = await addUser(api, { email: 'member@store.example', role: 'member', tenantId });
  // A machine with much else to do responds late, which counts as away until the next look.
  const is = sentence === null ? [] : [sentence];
  await eventually('the notices of the overview', () => noticesOf(member), { is });
});
