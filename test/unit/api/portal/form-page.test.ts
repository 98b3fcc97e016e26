import { beforeEach, describe, expect, test } from 'vitest';
import { PAGES } from '../../../../src/api/portal/access/page-access.ts';
import { formPage } from '../../../../src/api/portal/kits/form-page.ts';
import { invalidValue, RateLimitError, RequestError } from '../../../../src/platform/request-input.ts';
import { ESCAPED, HOSTILE, portalOf } from './kit-app.ts';

const PATH = '/portal/w/:wabaId/birds/:id/edit';
const EDIT = '/portal/w/77/birds/3/edit';

let saved: Record<string, unknown>[];
let refusal: RequestError | null;
beforeEach(() => {
  saved = [];
  refusal = null;
});

const portal = (role: 'admin' | 'member' = 'admin') =>
  portalOf((app, context) => {
    formPage(app, context, {
      path: PATH,
      access: PAGES.admin,
      seenBy: PAGES.member,
      active: 'birds',
      title: 'Edit a bird',
      trail: (visit) => [{ label: 'Birds', href: visit.at('/portal/w/:wabaId/birds') }],
      load: async ({ id }) => {
        if (id !== '3') throw new RequestError('unknown_bird', 'There is no such bird.');
        return { name: HOSTILE, colours: ['red'], isKept: true };
      },
      fields: [
        { name: 'name', label: 'Name', required: true, hint: ({ name }) => `Now: ${name}` },
        {
          name: 'colours',
          label: 'Colours',
          widget: 'ticks',
          options: [
            { value: 'red', label: 'Red' },
            { value: 'blue', label: 'Blue' },
          ],
        },
        { name: 'cage', label: 'Cage', isShown: ({ isKept }) => !isKept },
        { name: 'secret', label: 'Secret', type: 'password' },
        { name: 'confirm', label: 'Confirmation', isTypedAgain: true },
      ],
      values: ({ name, colours }) => ({ name, colours }),
      button: 'Save',
      submit: async (visit, given, subject) => {
        if (refusal !== null) throw refusal;
        saved.push({ name: given.text('name'), colours: given.list('colours'), was: subject.name });
        return `${visit.path}?done=saved`;
      },
    });
  }, role);

const FILLED = { name: 'Kea', colours: 'blue', secret: 'the secret', confirm: 'yes' };

describe('a form page', () => {
  test('shows the present values, escaped in fields and hints, and leaves out what is not meant', async () => {
    const { body } = await (await portal()).get(EDIT);
    expect(body).not.toContain('<script>alert');
    expect(body.split(ESCAPED)).toHaveLength(3);
    expect(body).toContain('value="red" checked');
    expect(body).not.toContain('name="cage"');
  });

  test('saves what was sent, and leads on', async () => {
    const answer = await (await portal()).post(EDIT, FILLED);
    expect([answer.statusCode, answer.headers.location]).toEqual([303, `${EDIT}?done=saved`]);
    expect(saved).toEqual([{ name: 'Kea', colours: ['blue'], was: HOSTILE }]);
  });

  test.each([
    ['without a token', ''],
    ['with a wrong token', 'x'.repeat(25)],
  ])('%s is refused, and nothing is saved', async (_, token) => {
    const answer = await (await portal()).post(EDIT, FILLED, token);
    expect([answer.statusCode, saved]).toEqual([403, []]);
    expect(answer.body).toContain('<title>Form refused');
  });

  test('shows a problem beside its field, with what was typed but no secret and no confirmation', async () => {
    refusal = invalidValue(`No bird is called ${HOSTILE}.`, 'name');
    const answer = await (await portal()).post(EDIT, { ...FILLED, name: HOSTILE });
    expect(answer.statusCode).toBe(422);
    expect(answer.body).toContain(`<p class="problem" id="name-problem">No bird is called ${ESCAPED}.</p>`);
    expect(answer.body).toMatch(
      /id="name"[^>]* aria-describedby="name-hint name-problem" aria-invalid="true"/,
    );
    expect(answer.body).toContain('value="blue" checked');
    expect(answer.body).not.toContain('the secret');
    expect(answer.body).toMatch(/id="confirm"[^>]* value=""/);
    expect(answer.body).not.toContain('<script>alert');
    expect(answer.body).not.toContain('class="notice error"');
  });

  test.each([['cage'], ['wings'], [null]])(
    'shows a problem with %s, which has no field, over the form',
    async (param) => {
      refusal = invalidValue('Nothing of this works.', param);
      const { body } = await (await portal()).post(EDIT, FILLED);
      expect(body).toMatch(/class="notice error" role="alert">.*Nothing of this works\./);
      expect(body).not.toContain('class="problem"');
    },
  );

  test('says when to try again', async () => {
    refusal = new RateLimitError('Too fast.', 7_000);
    const answer = await (await portal()).post(EDIT, FILLED);
    expect([answer.statusCode, answer.headers['retry-after']]).toEqual([429, '7']);
  });

  test('is not found where its subject is not, for looking and for sending', async () => {
    const browser = await portal();
    expect((await browser.get(EDIT.replace('3', '4'))).statusCode).toBe(404);
    expect((await browser.post(EDIT.replace('3', '4'), FILLED)).statusCode).toBe(404);
    expect(saved).toEqual([]);
  });

  test('refuses a form that lacks a field or is too long, before anything looks at it', async () => {
    const { name: _, ...incomplete } = FILLED;
    const browser = await portal();
    expect((await browser.post(EDIT, incomplete)).statusCode).toBe(400);
    expect((await browser.post(EDIT, { ...FILLED, name: 'a'.repeat(1_025) })).statusCode).toBe(400);
    expect(saved).toEqual([]);
  });

  test('has no form for those who only look', async () => {
    const { statusCode, body } = await (await portal('member')).get(EDIT);
    expect([statusCode, body.includes('name="name"')]).toEqual([200, false]);
  });
});
