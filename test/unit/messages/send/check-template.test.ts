import { expect, test } from 'vitest';
import { templateProblem } from '../../../../src/features/messages/send/check-template.ts';

const template = (more: object = {}, components: object[] = [], format = 'POSITIONAL') => ({
  templateId: '1',
  name: 'offer',
  language: 'en_US',
  status: 'APPROVED',
  category: 'MARKETING',
  quality: null,
  rejectedReason: null,
  content: JSON.stringify({ components, parameter_format: format }),
  updatedAt: new Date(),
  ...more,
});

const BODY = { type: 'BODY', text: 'Hello {{1}}, your {{2}} is ready, {{1}}.' };
const NAMED = { type: 'BODY', text: 'Hello {{first_name}}' };
const texts = (...parameters: object[]) => ({ components: [{ type: 'body', parameters }] });
const text = { type: 'text', text: 'x' };

test.each([
  [
    'PAUSED',
    'LOW_QUALITY',
    'template_paused',
    'The template offer (en_US) is paused by upstream: LOW_QUALITY.',
  ],
  ['DISABLED', null, 'template_disabled', 'The template offer (en_US) is disabled by upstream.'],
])('a template that is %s is refused with its reason', (status, rejectedReason, code, message) => {
  expect(templateProblem(template({ status, rejectedReason }), {})).toMatchObject({ code, message });
});

test.each(['APPROVED', 'PENDING', 'REJECTED', 'FLAGGED', 'SOMETHING', null])(
  'of the state %s upstream decides',
  (status) => {
    expect(templateProblem(template({ status }), {})).toBe(null);
  },
);

test.each([
  ['all', [BODY], 'POSITIONAL', texts(text, text), null],
  [
    'all, in a component of another case',
    [BODY],
    'POSITIONAL',
    { components: [{ type: 'BODY', parameters: [text, text] }] },
    null,
  ],
  ['a missing one', [BODY], 'POSITIONAL', texts(text), 'the body lacks {{2}}.'],
  ['none', [BODY], 'POSITIONAL', {}, 'the body lacks {{1}}, {{2}}.'],
  ['a surplus one', [BODY], 'POSITIONAL', texts(text, text, text), 'the body has no {{3}}.'],
  ['no variables', [{ type: 'BODY', text: 'Hello' }], 'POSITIONAL', {}, null],
  ['one by its name', [NAMED], 'NAMED', texts({ ...text, parameter_name: 'first_name' }), null],
  [
    'a wrong name',
    [NAMED],
    'NAMED',
    texts({ ...text, parameter_name: 'name' }),
    'the body lacks {{first_name}}.',
  ],
  [
    'a header',
    [{ type: 'HEADER', format: 'TEXT', text: '{{1}}' }],
    'POSITIONAL',
    {},
    'the header lacks {{1}}.',
  ],
  ['a header of media', [{ type: 'HEADER', format: 'IMAGE' }], 'POSITIONAL', {}, null],
  ['odd components', [{ type: 7, text: {} }], 'POSITIONAL', { components: 'x' }, null],
])('variables: %s', (_name, components, format, content, expected) => {
  const problem = templateProblem(template({}, components, format), content);
  expect(problem?.message ?? null).toBe(expected === null ? null : `The template offer (en_US): ${expected}`);
});

test('a template whose content is not known has no variables to check', () => {
  expect(templateProblem(template({ content: null }), {})).toBe(null);
});
