import { describe, expect, test } from 'vitest';
import { PAGES } from '../../../../src/api/portal/access/page-access.ts';
import { action } from '../../../../src/api/portal/kits/action.ts';
import { confirmationPage } from '../../../../src/api/portal/kits/confirmation-page.ts';
import { html } from '../../../../src/api/portal/markup.ts';
import { ESCAPED, HOSTILE, linksOf, portalOf } from './kit-app.ts';

const PATH = '/portal/w/:wabaId/birds/:id';
const FREE = '/portal/w/77/birds/3/free';

async function portalWithBirds() {
  const freed: string[] = [];
  const browser = await portalOf((app, context) => {
    confirmationPage(app, context, {
      path: `${PATH}/free`,
      access: PAGES.admin,
      active: 'birds',
      query: ['page'],
      load: async () => ({ name: HOSTILE }),
      title: ({ name }) => `Free ${name}?`,
      trail: (visit) => [{ label: 'Birds', href: visit.at('/portal/w/:wabaId/birds') }],
      body: ({ name }) => html`<p>${name} does not come back.</p>`,
      button: 'Free it',
      act: async (visit) => {
        freed.push(visit.id);
        return `${visit.at('/portal/w/:wabaId/birds')}?done=freed&page=${visit.query('page')}`;
      },
    });
    action(app, context, {
      path: `${PATH}/feed`,
      access: PAGES.admin,
      act: async ({ id }) => {
        freed.push(`fed ${id}`);
        return '/portal';
      },
    });
  });
  return { browser, freed };
}

describe('a confirmation page', () => {
  test('asks, with what is lost as text, a way back, and a form that carries the token', async () => {
    const { browser, freed } = await portalWithBirds();
    const page = await browser.get(`${FREE}?page=2`);
    expect(page.body).not.toContain('<script>alert');
    expect(page.body).toContain(`<p>${ESCAPED} does not come back.</p>`);
    expect(linksOf(page).Cancel).toBe('/portal/w/77/birds');
    expect(page.body).toMatch(
      new RegExp(`<form method="post" action="${FREE}\\?page=2"><input type="hidden" name="_csrf"`),
    );
    expect(freed).toEqual([]);
  });

  test('acts once its button is pressed, and leads to the part of the list that it came from', async () => {
    const { browser, freed } = await portalWithBirds();
    const answer = await browser.post(`${FREE}?page=2`);
    expect([answer.statusCode, answer.headers.location]).toEqual([
      303,
      '/portal/w/77/birds?done=freed&page=2',
    ]);
    expect(freed).toEqual(['3']);
  });

  test('and a single button do nothing without the token, or for what cannot be an id', async () => {
    const { browser, freed } = await portalWithBirds();
    for (const path of [FREE, FREE.replace('free', 'feed')]) {
      expect((await browser.post(path, {}, '')).statusCode).toBe(403);
      expect((await browser.post(path.replace('/3/', '/x/'))).statusCode).toBe(404);
    }
    expect(freed).toEqual([]);
  });
});
