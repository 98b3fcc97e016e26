import { expect, test } from 'vitest';
import { takeIn } from '../../../support/take-in.ts';
import { apiOfFile } from '../../api/api-harness.ts';
import { newOffice } from '../portal-browser.ts';

const api = apiOfFile();

/** A report of upstream about a template of a WABA. */
function report(wabaId: string, field: string, id: number, said: object): Buffer {
  const template = {
    message_template_id: id,
    message_template_name: `offer_${id}`,
    message_template_language: 'en',
  };
  const changes = [{ field, value: { ...template, ...said } }];
  return Buffer.from(JSON.stringify({ entry: [{ id: wabaId, time: 1_790_000_000, changes }] }));
}

const text = (body: string) => body.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');

test('the page of templates shows state, category, quality and why one was rejected, and nothing of others', async () => {
  const [store, other] = [await newOffice(api), await newOffice(api)];
  const pages = `${store.path}/templates`;
  const shown = async (query = '') => text((await store.admin.get(`${pages}${query}`)).body);
  expect(await shown()).toContain('No message templates known');
  await takeIn(
    api.database,
    report(store.wabaId, 'message_template_status_update', 1, {
      event: 'REJECTED',
      reason: 'INVALID_FORMAT',
    }),
    report(store.wabaId, 'message_template_quality_update', 2, { new_quality_score: 'YELLOW' }),
    report(store.wabaId, 'template_category_update', 2, {
      previous_category: 'UTILITY',
      new_category: 'MARKETING',
    }),
    report(other.wabaId, 'message_template_status_update', 3, { event: 'APPROVED', reason: 'NONE' }),
  );
  const all = await shown();
  expect(all).toMatch(/offer_1 en REJECTED: INVALID_FORMAT unknown unknown/);
  expect(all).toMatch(/offer_2 en unknown MARKETING YELLOW/);
  expect(all).not.toContain('offer_3');
  expect(await shown('?name=offer_2')).not.toContain('offer_1');
});
