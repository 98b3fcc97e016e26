import { beforeEach, expect, test } from 'vitest';
import { noteTemplates } from '../../../../src/features/accounts/templates.ts';
import { query, queryOnly } from '../../../../src/platform/postgres/sql.ts';
import { apiOfFile } from '../../api/api-harness.ts';
import { newOffice, newUser, type Office } from '../portal-browser.ts';

const api = apiOfFile();
let store: Office;
let pages: string;

const CONTENT = {
  components: [
    { type: 'HEADER', format: 'IMAGE' },
    { type: 'BODY', text: 'Hi {{1}}, <b>{{2}}</b> off' },
    { type: 'BUTTONS', buttons: [{ type: 'URL', text: 'Shop', url: 'https://shop.example/{{1}}' }] },
  ],
};
const NAMED = { template: 'winter_sale', language: 'en_US' };

beforeEach(async () => {
  store = await newOffice(api);
  pages = `${store.path}/broadcasts`;
  const { wabaId } = store;
  const nothing = { category: 'MARKETING', quality: null, rejectedReason: null, isChanged: false };
  const of = (templateId: string, status: string, content: string | null) => ({
    ...nothing,
    wabaId,
    templateId,
    name: `winter_sale${templateId === '1' ? '' : templateId}`,
    language: 'en_US',
    status,
    content,
    at: new Date(),
  });
  await noteTemplates(api.database, [
    of('1', 'APPROVED', JSON.stringify(CONTENT)),
    of('2', 'REJECTED', null),
    of('3', 'APPROVED', null),
  ]);
});

const text = (body: string) =>
  body
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .replaceAll('&quot;', '"');

async function newDraft(more: Record<string, string> = {}): Promise<string> {
  await store.admin.get(`${pages}/new/template?template=winter_sale&language=en_US`);
  const given = { ...NAMED, name: 'Sale', phoneNumberId: store.number, sendAt: '' };
  const values = 'https://shop.example/a.png\r\n\r\n\r\nsale';
  const made = await store.admin.post(`${pages}/new/template`, { ...given, values, ...more });
  expect([made.statusCode, text(made.body)]).toEqual([303, expect.anything()]);
  return String(made.headers.location).replace(/\/recipients$/, '');
}

const add = async (draft: string, recipients: string) => {
  await store.admin.get(`${draft}/recipients`);
  return await store.admin.post(`${draft}/recipients`, { recipients });
};

test('an admin selects a template, adds recipients, looks at them and starts the broadcast', async () => {
  expect((await store.admin.get(pages)).body).toContain(`href="${pages}/new"`);
  const templates = (await store.admin.get(`${pages}/new`)).body;
  expect(templates).toContain(`href="${pages}/new/template?template=winter_sale&amp;language=en_US"`);
  expect(templates).not.toContain('winter_sale2');
  const form = text(
    (await store.admin.get(`${pages}/new/template?template=winter_sale&language=en_US`)).body,
  );
  expect(form).toContain(
    '1. header: the https link of its image 2. body: {{1}} 3. body: {{2}} 4. button “Shop”',
  );
  const draft = await newDraft();
  const empty = (await store.admin.get(draft)).body;
  expect(empty).toContain(`href="${draft}/recipients"`);
  expect(empty).not.toContain(`href="${draft}/start"`);
  const added = await add(draft, '\ufeffto;ref;1;2\r\n+12025550143;c-1;Asha;20 %\r\n+12025550144;;Ben;10 %');
  expect([added.statusCode, text(added.body)]).toEqual([
    200,
    expect.stringContaining('2 added. The broadcast has 2 recipients.'),
  ]);
  const review = text((await store.admin.get(`${draft}/start`)).body);
  expect(review).toContain('Hi {{1}}, &lt;b&gt;{{2}}&lt;/b&gt; off');
  expect(review).toContain('12025550143 c-1 1: Asha; 2: 20 % 12025550144 – 1: Ben; 2: 10 %');
  const started = await store.admin.post(`${draft}/start`);
  expect([started.statusCode, started.headers.location]).toEqual([303, `${draft}?done=start`]);
  // The sign stays on the line of its number.
  expect((await store.admin.get(draft)).body).toContain('<strong>0\u00a0%</strong> of 2 recipients');
  const row = await queryOnly<{ state: string; template: string; requested_by: string }>(
    api.database,
    'select state, template, requested_by from broadcasts where waba_id = :wabaId',
    { wabaId: store.wabaId },
  );
  expect([row.state, row.requested_by]).toEqual(['running', store.adminEmail]);
  expect(JSON.parse(row.template)).toEqual({
    name: 'winter_sale',
    language: { code: 'en_US' },
    components: [
      {
        type: 'header',
        parameters: [{ type: 'image', image: { link: 'https://shop.example/a.png' } }],
      },
      { type: 'button', sub_type: 'url', index: '0', parameters: [{ type: 'text', text: 'sale' }] },
    ],
  });
  for (const path of ['recipients', 'start'])
    expect(text((await store.admin.get(`${draft}/${path}`)).body)).toContain('it cannot be changed any more');
});

test('each wrong line is named and stays in the form; the others are added', async () => {
  const draft = await newDraft();
  const first = await add(
    draft,
    'to,1,2\n+12025550143,Asha,20 %\n12025550143,Again,5 %\nnobody,Ben,10 %\n12025550145,Eve\n12025550146,a\u0000b,1\n12025550147,=A1,1',
  );
  const shown = text(first.body);
  expect(shown).toContain('1 added, 1 were there already, 4 not added. The broadcast has 1 recipient.');
  expect(shown).toContain('4 The customer must be a phone number');
  expect(shown).toContain('5 The cell of "2" is empty.');
  expect(shown).toContain('6 The cell of "1" has a line break');
  expect(shown).toContain('7 The cell of "1" is a formula: write its value.');
  expect(first.body).not.toContain('\0');
  const left = /<textarea[^>]*>([^<]*)/.exec(first.body)?.[1] ?? '';
  expect(left.split('\n').map((line) => line.split(',')[0])).toEqual([
    'to',
    'nobody',
    '12025550145',
    '12025550146',
    '12025550147',
  ]);
  const mended = await add(draft, 'to,1,2\n12025550145,Eve,15 %');
  expect(text(mended.body)).toContain('1 added. The broadcast has 2 recipients.');
  // Without the variables of the body the template cannot be sent.
  expect(text((await add(draft, '12025550149')).body)).toContain(
    '1 The template winter_sale (en_US): the body lacks',
  );
});

test.for([
  ['phone,name\n12025550143,Asha', 'Line 1 has several columns: the first line must name them'],
  ['', 'There is no recipient.'],
  ['to,1\n"12025550143,Asha', 'Line 2: a quotation mark is opened and not closed.'],
  [Array.from({ length: 10_001 }, (_, n) => 12_025_000_000 + n).join('\n'), 'from line 10001 on'],
])('a file that cannot be read adds none', async ([given, message]) => {
  const draft = await newDraft();
  const { statusCode, body } = await add(draft, given ?? '');
  expect([statusCode, text(body)]).toEqual([422, expect.stringContaining(message ?? '')]);
  const rows = await query(api.database, 'select 1 from broadcast_recipients where waba_id = :wabaId', {
    wabaId: store.wabaId,
  });
  expect(rows).toEqual([]);
});

test('10,000 lines are added at once, and the same file again adds none', async () => {
  const draft = await newDraft();
  const lines = Array.from({ length: 10_000 }, (_, n) => `${12_025_000_000 + n},Áshá ${n},20 %`);
  const file = `to,1,2\n${lines.join('\n')}`;
  expect(text((await add(draft, file)).body)).toContain('10,000 added. The broadcast has 10,000 recipients.');
  expect(text((await add(draft, file)).body)).toContain('0 added, 10,000 were there already.');
});

test('what a form lacks is said beside its field', async () => {
  await store.admin.get(`${pages}/new/template?template=winter_sale&language=en_US`);
  const given = { ...NAMED, name: 'Sale', phoneNumberId: store.number, sendAt: '', values: 'a\n\n\nsale' };
  for (const [field, value, message] of [
    ['values', '', 'There is no value for the header: the https link of its image.'],
    ['values', 'a\nb\n\nc', 'There is no value for the body: {{2}}.'],
    ['name', ' ', 'The name must not be empty.'],
    ['sendAt', '2020-01-01T00:00', 'must be'],
    ['sendAt', 'tomorrow', 'must be'],
    ['phoneNumberId', '1', 'The WABA has no such phone number.'],
  ] as const) {
    const { statusCode, body } = await store.admin.post(`${pages}/new/template`, {
      ...given,
      [field]: value,
    });
    expect([field, statusCode, text(body)]).toEqual([field, 422, expect.stringContaining(message)]);
    expect(body).toContain(`id="${field}-problem"`);
  }
  const unknown = await store.admin.get(`${pages}/new/template?template=nothing&language=en_US`);
  expect(unknown.statusCode).toBe(404);
});

test('a member only looks, and another tenant finds nothing', async () => {
  const draft = await newDraft();
  const { browser: member } = await newUser(api, store.tenantId);
  expect((await member.get(pages)).body).not.toContain(`${pages}/new`);
  const other = await newOffice(api);
  for (const path of [`${draft}/recipients`, `${draft}/start`, `${pages}/new`, `${pages}/new/template`]) {
    expect((await member.get(path)).statusCode).toBe(403);
    expect((await other.admin.get(path)).statusCode).toBe(404);
    // The draft of one tenant under the path of another.
    const elsewhere = path.replace(store.path, other.path);
    if (path.startsWith(draft)) expect((await other.admin.get(elsewhere)).statusCode).toBe(404);
  }
});
