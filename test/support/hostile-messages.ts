/** JSON texts of values that no message has. */
export const HOSTILE_JSON: readonly string[] = [
  ...['null', 'true', '0', '-1', '1.5', '[]', '{}', '[[[]]]', '[null]', '{"":""}'],
  ...['1e400', '-1e400', '1e308', '9007199254740993', '12345678901234567890', '0.1e-30'],
  '""',
  '"\\u0000"',
  '"\\ud800"',
  '{"\\udc00":1}',
  '{"a\\u0000b":1}',
  '"\\u202e<script>alert(1)</script>"',
  `"'; drop table messages; --"`,
  '"👩‍👩‍👧‍👦"',
  '"../../etc/passwd%00"',
  '"med_1"',
  '{"id":"med_01920000000070008000000000000000"}',
  '{"__proto__":{"admin":true}}',
  '{"constructor":{"prototype":{"admin":true}}}',
  '{"type":"__proto__","toString":1,"hasOwnProperty":2}',
  JSON.stringify('x'.repeat(50_000)),
  JSON.stringify(Array.from({ length: 5_000 }, () => ({}))),
  JSON.stringify(Object.fromEntries(Array.from({ length: 2_000 }, (_, n) => [`m${n}`, n]))),
  `${'{"a":'.repeat(40)}1${'}'.repeat(40)}`,
  `${'['.repeat(5_000)}${']'.repeat(5_000)}`,
];

/** The paths of all members of a value, itself included. */
export function membersOf(value: unknown, path: readonly string[]): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([name, member]) => membersOf(member, [...path, name]))];
}

const MARK = 'the member that is replaced';

/** An object as JSON text with one member replaced by a JSON text, which need not be one that JavaScript can write. */
export function withMember(object: object, path: readonly string[], json: string): string {
  const copy = structuredClone(object) as Record<string, unknown>;
  const last = path.at(-1) ?? '';
  let at = copy;
  for (const name of path.slice(0, -1)) at = at[name] as Record<string, unknown>;
  at[last] = MARK;
  return JSON.stringify(copy).replace(JSON.stringify(MARK), () => json);
}
