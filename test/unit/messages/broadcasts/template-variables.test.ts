import { expect, test } from 'vitest';
import {
  componentsWith,
  templateText,
  templateVariables,
} from '../../../../src/features/messages/broadcasts/template-variables.ts';

const templateOf = (components: object[], more: object = {}) => ({
  content: JSON.stringify({ ...more, components }),
});

const SALE = templateOf([
  { type: 'HEADER', format: 'IMAGE' },
  { type: 'BODY', text: 'Hi {{1}}, {{2}} off for {{1}}' },
  { type: 'FOOTER', text: 'Bye' },
  {
    type: 'BUTTONS',
    buttons: [
      { type: 'QUICK_REPLY', text: 'Stop' },
      { type: 'URL', text: 'Shop', url: 'https://shop.example/{{1}}' },
      { type: 'URL', text: 'Home', url: 'https://shop.example/' },
      { type: 'COPY_CODE', text: 'Copy' },
    ],
  },
]);

test('what a template leaves open is listed in its order', () => {
  expect(templateVariables(SALE).map(({ label }) => label)).toEqual([
    'header: the https link of its image',
    'body: {{1}}',
    'body: {{2}}',
    'button “Shop”: the end of its link',
    'button “Copy”: its code',
  ]);
  expect(templateText(SALE)).toBe('Hi {{1}}, {{2}} off for {{1}}');
  expect([templateVariables({ content: null }), templateText({ content: null })]).toEqual([[], null]);
});

test('values become the components that upstream takes', () => {
  const variables = templateVariables(SALE);
  const image = 'https://shop.example/a.png';
  const fixed = [
    { type: 'header', parameters: [{ type: 'image', image: { link: image } }] },
    { type: 'button', sub_type: 'url', index: '1', parameters: [{ type: 'text', text: 'sale' }] },
    {
      type: 'button',
      sub_type: 'copy_code',
      index: '3',
      parameters: [{ type: 'coupon_code', coupon_code: 'W20' }],
    },
  ];
  expect(componentsWith(variables, [image, '', '', 'sale', 'W20'])).toEqual(fixed);
  const body = {
    type: 'body',
    parameters: [
      { type: 'text', text: 'you' },
      { type: 'text', text: '20 %' },
    ],
  };
  expect(componentsWith(variables, [image, 'you', '20 %', 'sale', 'W20'])).toEqual([
    fixed[0],
    body,
    ...fixed.slice(1),
  ]);
  expect(componentsWith([], [])).toEqual([]);
});

test('names of variables are told to upstream', () => {
  const named = templateOf([{ type: 'body', text: 'Hi {{first_name}}' }], { parameter_format: 'NAMED' });
  expect(componentsWith(templateVariables(named), ['Asha'])).toEqual([
    { type: 'body', parameters: [{ type: 'text', parameter_name: 'first_name', text: 'Asha' }] },
  ]);
});

test.for([
  [['', '', '', 'sale', 'W20'], 'no value for the header: the https link of its image'],
  [['https://a.example', 'you', '', 'sale', 'W20'], 'no value for the body: {{2}}'],
  [['https://a.example'], 'no value for the button “Shop”'],
  [['a', 'b', 'c', 'd', 'e', 'f'], 'There are 6 values, and the template has 5 variables.'],
] as const)('values that do not fit are refused: %j', ([values, message]) => {
  expect(() => componentsWith(templateVariables(SALE), values)).toThrow(message);
});
