import { describe, expect, test } from 'vitest';
import { PAGES } from '../../../../src/api/portal/access/page-access.ts';
import { type ListPage, listPage } from '../../../../src/api/portal/kits/list-page.ts';
import { ESCAPED, HOSTILE, linksOf, portalOf } from './kit-app.ts';

type Bird = { id: string; name: string };

const PATH = '/portal/w/:wabaId/birds';
const BIRDS = Array.from({ length: 5 }, (_, at): Bird => ({ id: String(5 - at), name: `bird ${5 - at}` }));

const BY_CURSOR: ListPage<Bird> = {
  path: PATH,
  access: PAGES.member,
  active: 'birds',
  title: 'Birds',
  lead: 'All birds.',
  columns: [
    { label: 'Id', kind: 'number', cell: ({ id }) => id },
    { label: 'Name', cell: ({ name }) => name },
  ],
  pageSize: 2,
  filters: [{ name: 'find', label: 'Find' }],
  add: { label: 'Add a bird', path: `${PATH}/new` },
  empty: { title: 'No birds', text: 'They are away.' },
  find: async (_, { filters: { find = '' }, beforeId, limit }) =>
    BIRDS.filter(
      ({ id, name }) => name.includes(find) && (beforeId === null || Number(id) < Number(beforeId)),
    ).slice(0, limit),
  positionOf: ({ id }) => [id],
};

const { positionOf: _, ...BY_NUMBER } = { ...BY_CURSOR, find: async () => BIRDS };

const portal = (page: ListPage<Bird>, role: 'admin' | 'member' = 'admin') =>
  portalOf((app, context) => {
    listPage(app, context, page);
  }, role);

const shown = (body: string) => [...body.matchAll(/bird (\d)/g)].map(([, id]) => id);

describe('a list page', () => {
  test('shows what people made up as text, in cells and in the fields over the list', async () => {
    const browser = await portal({ ...BY_CURSOR, find: async () => [{ id: '1', name: HOSTILE }] });
    const { body } = await browser.get(`/portal/w/77/birds?${new URLSearchParams({ find: HOSTILE })}`);
    expect(body).not.toContain('<script>alert');
    expect(body.split(ESCAPED)).toHaveLength(3);
  });

  test('walks by cursor to each row once, and its links keep the filters', async () => {
    const browser = await portal(BY_CURSOR);
    const seen: (string | undefined)[] = [];
    let next: string | undefined = '/portal/w/77/birds?find=bird';
    while (next !== undefined) {
      const page = await browser.get(next);
      seen.push(...shown(page.body));
      const links = linksOf(page);
      next = links['Next page'];
      expect(next === undefined || next.startsWith('/portal/w/77/birds?find=bird&cursor=')).toBe(true);
      expect(links['First page']).toBe(seen.length > 2 ? '/portal/w/77/birds?find=bird' : undefined);
    }
    expect(seen).toEqual(['5', '4', '3', '2', '1']);
  });

  test('opens no cursor of another list, WABA or filter: the first page is shown', async () => {
    const browser = await portal(BY_CURSOR);
    const next = linksOf(await browser.get('/portal/w/77/birds?find=bird'))['Next page'] ?? '';
    const cursor = new URLSearchParams(next.split('?')[1]).get('cursor') ?? '';
    expect(cursor).not.toBe('');
    for (const url of [
      `/portal/w/77/birds?cursor=${cursor}`,
      `/portal/w/78/birds?find=bird&cursor=${cursor}`,
    ])
      expect(shown((await browser.get(url)).body)).toEqual(['5', '4']);
  });

  test('without positions has numbered pages, and its links keep the filters', async () => {
    const browser = await portal(BY_NUMBER);
    const second = await browser.get('/portal/w/77/birds?find=b&page=2');
    expect(shown(second.body)).toEqual(['3', '2']);
    expect(linksOf(second)).toMatchObject({
      'Previous page': '/portal/w/77/birds?find=b&page=1',
      'Next page': '/portal/w/77/birds?find=b&page=3',
    });
  });

  test('leads to the form for another one, in the empty list too, and members nowhere', async () => {
    const full = await (await portal(BY_CURSOR)).get('/portal/w/77/birds');
    expect(linksOf(full)['Add a bird']).toBe('/portal/w/77/birds/new');
    const empty = await (await portal({ ...BY_CURSOR, find: async () => [] })).get('/portal/w/77/birds');
    expect(empty.body.split('Add a bird')).toHaveLength(2);
    expect(empty.body).toContain('They are away.');
    const member = await (await portal(BY_CURSOR, 'member')).get('/portal/w/77/birds');
    expect([member.statusCode, member.body.includes('Add a bird')]).toEqual([200, false]);
  });
});
