import { expect, test } from 'vitest';
import {
  pagesOfRecipients,
  readRecipientFile,
} from '../../../../src/features/messages/broadcasts/recipient-file.ts';
import { documentBlocks } from '../../../support/document-blocks.ts';

const read = (text: string, most = 10_000) => readRecipientFile(text, most);
const given = (text: string) => read(text).recipients.map((one) => one.given);
const wrong = (text: string) => read(text).problems.map(({ line, message }) => `${line}: ${message}`);

test('one number to a line, with blank lines, line ends of all systems and a byte order mark', () => {
  const file = read('\ufeff+1 202-555-0143\r\n\r\n+12025550144\r12025550145\n   \n');
  expect(file.recipients.map(({ line, given: one }) => [line, one.to])).toEqual([
    [1, '+1 202-555-0143'],
    [3, '+12025550144'],
    [4, '12025550145'],
  ]);
  expect([file.problems, file.head]).toEqual([[], null]);
});

test.for([
  ['commas', 'to,ref,1,2\n+12025550143,c-1,Asha,20 %\n'],
  ['semicolons', 'To;Ref;1;2\r\n+12025550143;c-1;Asha;20 %\r\n'],
  ['tabs', 'to\tref\t1\t2\n+12025550143\tc-1\tAsha\t20 %'],
  ['columns in another order', '\ufeff2,1,ref,to\n20 %,Asha,c-1,+12025550143'],
  ['quotation marks', '"to","ref","1","2"\n"+12025550143","c-1","Asha","20 %"'],
  ['empty columns at the end', 'to,ref,1,2,,\n+12025550143,c-1,Asha,20 %,,\n,,,,,\n'],
])('a table with %s', ([, text]) => {
  expect(given(text ?? '')).toEqual([{ to: '+12025550143', ref: 'c-1', parameters: ['Asha', '20 %'] }]);
});

test('variables have names too, and cells hold separators and quotation marks', () => {
  expect(
    given('to,first_name,what\n12025550143,"Asha, of ""the shop""",a;b\n12025550144,,\n12025550145'),
  ).toEqual([
    { to: '12025550143', parameters: { first_name: 'Asha, of "the shop"', what: 'a;b' } },
    { to: '12025550144' },
    { to: '12025550145' },
  ]);
});

test('the file in the documentation', () => {
  const { code = '' } = documentBlocks().find(({ marker }) => marker?.startsWith('recipients: ')) ?? {};
  expect(given(code)).toEqual([
    { to: '+12025550143', ref: 'customer-4711', parameters: ['Asha', '20 %'] },
    { to: '+12025550144', ref: 'customer-4712', parameters: ['Ben', '10 %'] },
  ]);
  expect(wrong(code)).toEqual([]);
});

test('each wrong line is named, and keeps out no other', () => {
  const text = [
    'to,ref,1',
    '12025550143,a,Asha',
    ',b,Ben',
    '12025550144,c',
    '12025550145,d,Eve,more',
    '12025550146,e,=HYPERLINK("https://x.example")',
    '12025550147,f,#REF!',
    '12025550148,g,a\u0000b',
    '12025550149,h,"two',
    'lines"',
    `12025550150,i,${'x'.repeat(1_025)}`,
    `12025550151,${'r'.repeat(201)},Zoe`,
    '=1+1,j,Zoe',
    '12025550152,k,Zoe',
    '12025550153,l,Jos\ufffd',
  ].join('\n');
  expect(given(text).map(({ ref }) => ref)).toEqual(['a', 'c', 'k']);
  expect(wrong(text)).toEqual([
    '3: The cell of "to" is empty.',
    '5: There are 4 cells, but 3 columns are named.',
    '6: The cell of "1" is a formula: write its value.',
    '7: The cell of "1" is a formula: write its value.',
    '8: The cell of "1" has a line break, a tab or another character that cannot be sent.',
    '9: The cell of "1" has a line break, a tab or another character that cannot be sent.',
    '11: The cell of "1" has more than 1024 characters.',
    '12: The cell of "ref" has more than 200 characters.',
    '13: The cell of "to" is a formula: write its value.',
    '15: The cell of "1" has a line break, a tab or another character that cannot be sent.',
  ]);
  expect(wrong('to,1,2\n12025550143,Asha,')).toEqual(['2: The cell of "2" is empty.']);
  expect(read('to,1\n=1,x').problems[0]?.text).toBe('=1,x');
});

test.for([
  ['', 'There is no recipient.'],
  ['\ufeff \r\n', 'There is no recipient.'],
  ['12025550143\n12025550144,Asha', 'Line 2 has several columns: the first line must name them'],
  ['phone,name\n12025550143,Asha', 'Line 1 has several columns: the first line must name them'],
  ['to,to\n1,2', 'Two columns are named "to".'],
  ['to,first name\n1,2', 'The column "first name" is not known'],
  ['to,,1\n1,,2', 'The column "" is not known'],
  ['to,1,name\n1,2,3', 'not both'],
  ['to,1,3\n1,2,3', 'The column 2 is missing'],
  ['to,1\n12025550143,"Asha\n12025550144,Ben', 'Line 2: a quotation mark is opened and not closed.'],
  [`to,${'a,'.repeat(200_000)}b`, 'more than 102'],
])('a file that cannot be read: %j', ([text, message]) => {
  expect(() => read(text ?? '')).toThrow(message);
});

test('a line too many is named, and none is taken', () => {
  const lines = Array.from({ length: 10_001 }, (_, n) => `1202${5_550_000 + n}`);
  expect(read(lines.slice(1).join('\n')).recipients).toHaveLength(10_000);
  expect(() => read(lines.join('\n'))).toThrow(
    'At most 10,000 recipients at once: put those from line 10001 on into another file.',
  );
  expect(() => read(`to\n${lines.join('\n')}`)).toThrow('from line 10002 on');
});

test('pages have up to 1,000 recipients, and fit into a request', () => {
  const sizes = (text: string) => pagesOfRecipients(read(text).recipients).map(({ length }) => length);
  expect(sizes(Array.from({ length: 2_001 }, (_, n) => `1202${5_550_000 + n}`).join('\n'))).toEqual([
    1_000, 1_000, 1,
  ]);
  const long = Array.from({ length: 300 }, (_, n) => `1202${5_550_000 + n},${'é'.repeat(1_000)}`);
  expect(Math.max(...sizes(`to,1\n${long.join('\n')}`))).toBeLessThan(110);
});
