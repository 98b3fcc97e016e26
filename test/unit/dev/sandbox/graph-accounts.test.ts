import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { graph, postJson, startSandbox } from './sandbox-harness.ts';

const GRAPH_FIXTURES = new URL('../../../fixtures/upstream/graph/', import.meta.url);

describe('phone numbers', () => {
  test('of the demo account have the members of the documented list', async () => {
    const { url } = await startSandbox();
    const expected = JSON.parse(await readFile(new URL('phone_numbers_200.json', GRAPH_FIXTURES), 'utf8'));
    const body = await (await graph(`${url}/v26.0/900000000000101/phone_numbers`)).json();
    expect(body.data).toMatchObject(expected.body.data);
    expect(body.paging.cursors).toEqual({ before: expect.any(String), after: expect.any(String) });
  });

  test('of the Indian account are its own only, and a number can be read by itself', async () => {
    const { url } = await startSandbox();
    const body = await (await graph(`${url}/v26.0/900000000000202/phone_numbers`)).json();
    expect(body.data.map((phone: { id: string }) => phone.id)).toEqual(['800000000000221']);
    const phone = await (await graph(`${url}/v26.0/800000000000221?fields=verified_name`)).json();
    expect(phone).toEqual({ id: '800000000000221', verified_name: 'Fixture Store India' });
    expect((await graph(`${url}/v26.0/900000000000999/phone_numbers`)).status).toBe(400);
  });

  test('are given page by page', async () => {
    const { url } = await startSandbox();
    const first = await (await graph(`${url}/v26.0/900000000000101/phone_numbers?limit=1`)).json();
    const second = await (await graph(first.paging.next)).json();
    expect([first.data[0].id, second.data[0].id]).toEqual(['800000000000111', '800000000000112']);
    expect(second.paging.next).toBeUndefined();
  });

  test('can be added, and then send and list like the demo ones', async () => {
    const { url } = await startSandbox();
    const phone = {
      wabaId: '900000000000303',
      phoneNumberId: '800000000000331',
      displayPhoneNumber: '+1 202-555-0133',
      verifiedName: 'Third',
    };
    expect((await postJson(`${url}/sandbox/phone-numbers`, phone)).status).toBe(200);
    const body = await (await graph(`${url}/v26.0/900000000000303/phone_numbers`)).json();
    expect(body.data).toMatchObject([{ id: '800000000000331', verified_name: 'Third' }]);
  });
});

describe('catalog products', () => {
  const ask = async (url: string, filter: string, more = '') => {
    const fields = 'fields=id,retailer_id,name,image_url';
    return graph(
      `${url}/v26.0/700000000000002/products?${fields}&filter=${encodeURIComponent(filter)}${more}`,
    );
  };

  test('are found for any retailer id, the same every time, except those called unknown', async () => {
    const { url } = await startSandbox();
    const filter = JSON.stringify({ retailer_id: { is_any: ['sku-red-42', 'मसाला-01', 'sku-unknown-1'] } });
    const body = await (await ask(url, filter)).json();
    expect(body.data).toHaveLength(2);
    expect(body.data[0]).toMatchObject({ retailer_id: 'sku-red-42', name: 'Demo Red 42' });
    for (const product of body.data) {
      expect(Object.keys(product)).toEqual(['id', 'retailer_id', 'name', 'image_url']);
      expect(product.id).toMatch(/^\d+$/);
      expect(new URL(product.image_url).protocol).toBe('https:');
    }
    expect((await (await ask(url, filter)).json()).data).toEqual(body.data);
  });

  test('come in pages of 25 unless a limit says otherwise', async () => {
    const { url } = await startSandbox();
    const ids = Array.from({ length: 30 }, (_, index) => `sku-${index}`);
    const filter = JSON.stringify({ retailer_id: { is_any: ids } });
    const page = await (await ask(url, filter)).json();
    expect(page.data).toHaveLength(25);
    const rest = await (await graph(page.paging.next)).json();
    expect(rest.data).toHaveLength(5);
    expect((await (await ask(url, filter, '&limit=100')).json()).data).toHaveLength(30);
  });

  test.each(['{', 'null', '[]', '{"retailer_id":{"is_any":"x"}}', '{"retailer_id":{"is_any":[1]}}'])(
    'refuse the filter %s with error 100',
    async (filter) => {
      const { url } = await startSandbox();
      const response = await ask(url, filter);
      expect(response.status).toBe(400);
      expect((await response.json()).error.code).toBe(100);
    },
  );
});
