/** Bodies of a size that cost as much as bodies of that size can: made of the smallest values that there are. */

/** Fewer than the values that are taken, so that what comes after the count is tried too. */
const FEW_VALUES = 9_000;

export type CostlyBody = { name: string; contentType: string; payload: string | Buffer };

/** Large texts are made once: many routes have one limit. */
function oncePerSize<T>(make: (sizeBytes: number) => T): (sizeBytes: number) => T {
  const made = new Map<number, T>();
  return (sizeBytes) => {
    const present = made.get(sizeBytes) ?? make(sizeBytes);
    made.set(sizeBytes, present);
    return present;
  };
}

/** Values that make a JSON text of up to `sizeBytes`: as many as fit, and as many as are taken. */
export const costlyValues = oncePerSize(makeValues);

function makeValues(sizeBytes: number): Map<string, string> {
  const all = new Map<string, string>();
  const fill = (piece: string) => piece.repeat(Math.max(1, Math.floor((sizeBytes - 4) / piece.length)));
  const few = (piece: string) =>
    piece.repeat(Math.min(FEW_VALUES, Math.floor((sizeBytes - 4) / piece.length)));
  for (const piece of ['0,', '{},', '"",', '{"a":0},']) {
    all.set(`as many ${piece} as fit`, `[${fill(piece)}0]`);
    all.set(`many ${piece}`, `[${few(piece)}0]`);
  }
  all.set('as many names as fit', members(sizeBytes, Number.POSITIVE_INFINITY));
  all.set('many names', members(sizeBytes, FEW_VALUES));
  const depth = Math.floor((sizeBytes - 1) / 2);
  all.set('nested lists', `${'['.repeat(depth)}${']'.repeat(depth)}`);
  const levels = Math.min(FEW_VALUES, Math.floor((sizeBytes - 1) / 6));
  all.set('deep objects', `${'{"a":'.repeat(levels)}0${'}'.repeat(levels)}`);
  for (const piece of ['a', '\\u0001', '[0,']) all.set(`a text of ${piece}`, `"${fill(piece)}"`);
  return all;
}

function members(sizeBytes: number, most: number): string {
  const parts: string[] = [];
  let length = 16;
  for (let n = 0; n < most; n += 1) {
    const part = `"${n.toString(36)}":0`;
    length += part.length + 1;
    if (length > sizeBytes) break;
    parts.push(part);
  }
  return `{${parts.join(',')}}`;
}

const JSON_TYPE = 'application/json';

/** JSON bodies of up to `sizeBytes`. */
const costlyJson = oncePerSize(makeJson);

function makeJson(sizeBytes: number): CostlyBody[] {
  return [...costlyValues(sizeBytes - 16)].map(([name, value]) => {
    return { name, contentType: JSON_TYPE, payload: `{"type":${value}}` };
  });
}

/** Forms of up to `sizeBytes`; `first` comes before the rest, such as the token of the form. */
function costlyForms(sizeBytes: number, first = ''): CostlyBody[] {
  const room = sizeBytes - first.length;
  const fill = (piece: string) => piece.repeat(Math.max(1, Math.floor(room / piece.length)));
  const names = Array.from({ length: Math.floor(room / 5) }, (_, n) => n.toString(36)).join('&');
  const longest = `${'a'.repeat(Math.max(1, Math.floor(room / 190) - 1))}&`.repeat(190);
  const pieces = ['a&', 'a=b&', '%41', '%ff', 'a=%0A&'];
  const texts = [...pieces.map(fill), names, longest, `a=${fill('a%0A')}`];
  return texts.map((text) => ({
    name: `a form of ${text.slice(0, 8)}`,
    contentType: 'application/x-www-form-urlencoded',
    payload: `${first}${text}`.slice(0, sizeBytes),
  }));
}

const BOUNDARY = 'XX';

/** Forms with files of up to `sizeBytes`. */
const costlyMultiparts = oncePerSize(makeMultiparts);

function makeMultiparts(sizeBytes: number): CostlyBody[] {
  const end = `--${BOUNDARY}--\r\n`;
  const room = Math.max(0, sizeBytes - end.length - 200);
  const part = (name: string, content: string, more = '') =>
    `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${content}\r\n`;
  const fill = (piece: string) => piece.repeat(Math.max(1, Math.floor(room / piece.length)));
  const file = (content: string) => part('file', content, '; filename="a.json"');
  const many = Array.from({ length: Math.floor(room / 70) }, (_, n) => part(n.toString(36), '')).join('');
  const some = Array.from({ length: 9 }, (_, n) =>
    part(n.toString(36), 'a'.repeat(Math.floor(room / 10))),
  ).join('');
  const texts = new Map([
    ['many parts', many],
    ['some parts', some],
    ['a long name', part(fill('a'), '')],
    ['many headers', `--${BOUNDARY}\r\n${fill('a: b\r\n')}\r\n\r\n`],
    ['an endless header', `--${BOUNDARY}\r\n${fill('a')}`],
    ['only boundaries', fill(`--${BOUNDARY}\r\n`)],
    ['no boundary', fill('\r\n--')],
  ]);
  for (const piece of ['a', '\r\n--X']) texts.set(`a file of ${JSON.stringify(piece)}`, file(fill(piece)));
  return [...texts].map(([name, text]) => ({
    name,
    contentType: `multipart/form-data; boundary=${BOUNDARY}`,
    payload: Buffer.from(`${text}${end}`.slice(-sizeBytes)),
  }));
}

/** Bodies of every kind that a route might read; what it does not take costs it nothing. */
export function costlyBodies(sizeBytes: (contentType: string) => number, firstField = ''): CostlyBody[] {
  return [
    ...costlyJson(sizeBytes('application/json')),
    ...costlyForms(sizeBytes('application/x-www-form-urlencoded'), firstField),
    ...costlyMultiparts(sizeBytes('multipart/form-data')),
    { name: 'text', contentType: 'text/plain', payload: 'a'.repeat(sizeBytes('text/plain')) },
    {
      name: 'bytes',
      contentType: 'application/octet-stream',
      payload: Buffer.alloc(sizeBytes('application/octet-stream')),
    },
  ];
}
