import { fixtureBody, fixtureNames } from '../upstream-fixtures.ts';

type Dice = () => number;

const FIXTURES = fixtureNames().map(fixtureBody);

/** Texts that have broken parsers, put anywhere into the bytes. */
const TOKENS = [
  ...[
    '\\u0000',
    '\\ud800',
    '"\\udfff"',
    '1e999',
    '-0',
    '1E-400',
    '123456789012345678901234567890',
    '{}',
    '[]',
  ],
  ...[
    'null',
    'true',
    '"',
    '\\',
    ',',
    ':',
    '[[[[[[[[',
    '{"a":{"a":{"a":',
    '"__proto__":{"x":1},',
    '\u2028',
    '﻿',
  ],
  ...[
    '"constructor":null,',
    '"entry":[],',
    '"id":"0",',
    '\r\n',
    '\t',
    '/*',
    '//',
    "'",
    'NaN',
    'Infinity',
    '+1',
  ],
];

const pick = <Item>(dice: Dice, items: readonly Item[]): Item =>
  items[Math.floor(dice() * items.length)] as Item;

const upTo = (dice: Dice, most: number) => Math.floor(dice() * (most + 1));

/** A body as no honest sender writes it: a fixture changed in its bytes or its structure, or bytes without sense. */
export function mutatedBody(dice: Dice): Buffer {
  const kind = dice();
  if (kind < 0.02) return Buffer.from(Array.from({ length: upTo(dice, 2_000) }, () => upTo(dice, 255)));
  if (kind < 0.5) return changedBytes(dice, pick(dice, FIXTURES));
  // The change may have been to remove all of it.
  const tree = changedTree(dice, JSON.parse(pick(dice, FIXTURES).toString())) ?? null;
  const body = Buffer.from(JSON.stringify(tree));
  return kind < 0.85 ? body : changedBytes(dice, body);
}

/** An entry of a fixture with its structure changed; still JSON, so that entries beside it can be read. */
export function mutatedEntry(dice: Dice): unknown {
  const { entry } = JSON.parse(pick(dice, FIXTURES).toString()) as { entry: unknown[] };
  return changedTree(dice, pick(dice, entry));
}

function changedBytes(dice: Dice, bytes: Buffer): Buffer {
  let changed = bytes;
  for (let times = 1 + upTo(dice, 3); times > 0; times -= 1) changed = changedOnce(dice, changed);
  return changed;
}

function changedOnce(dice: Dice, bytes: Buffer): Buffer {
  const at = upTo(dice, bytes.length);
  const end = Math.min(bytes.length, at + upTo(dice, 40));
  const [head, part, tail] = [bytes.subarray(0, at), bytes.subarray(at, end), bytes.subarray(end)];
  switch (upTo(dice, 6)) {
    case 0:
      return Buffer.concat([head, tail]);
    case 1:
      return Buffer.concat([head, part, part, tail]);
    case 2:
      return head;
    case 3:
      return Buffer.concat([head, Buffer.from(pick(dice, TOKENS)), tail]);
    case 4: {
      const other = pick(dice, FIXTURES);
      const from = upTo(dice, other.length);
      return Buffer.concat([head, other.subarray(from, from + upTo(dice, 200)), tail]);
    }
    case 5:
      return Buffer.concat([head, Buffer.from(Array.from({ length: 4 }, () => upTo(dice, 255))), tail]);
    default: {
      const flipped = Buffer.from(bytes);
      if (at < flipped.length) flipped[at] = (flipped[at] ?? 0) ^ (1 << upTo(dice, 7));
      return flipped;
    }
  }
}

type Place = { holder: Record<string, unknown>; key: string };

function placesIn(value: unknown, found: Place[] = []): Place[] {
  if (typeof value !== 'object' || value === null) return found;
  const holder = value as Record<string, unknown>;
  for (const key of Object.keys(holder)) {
    found.push({ holder, key });
    placesIn(holder[key], found);
  }
  return found;
}

function changedTree(dice: Dice, tree: unknown): unknown {
  const root: Record<string, unknown> = { tree };
  for (let times = 1 + upTo(dice, 3); times > 0; times -= 1) {
    const places = placesIn(root.tree);
    const { holder, key } = places.length === 0 ? { holder: root, key: 'tree' } : pick(dice, places);
    changePlace(dice, holder, key, places);
  }
  return root.tree;
}

function changePlace(
  dice: Dice,
  holder: Record<string, unknown>,
  key: string,
  places: readonly Place[],
): void {
  switch (upTo(dice, 6)) {
    case 0:
      if (Array.isArray(holder)) holder.splice(Number(key), 1);
      else delete holder[key];
      return;
    case 1:
      holder[key] = [holder[key], structuredClone(holder[key])];
      return;
    case 2:
      holder[`${key}${pick(dice, ['', 's', '_', '\u0000', ' '])}x`] = holder[key];
      return;
    case 3: {
      const other = places.length === 0 ? undefined : pick(dice, places);
      holder[key] = structuredClone(other?.holder[other.key]);
      return;
    }
    case 4:
      holder[key] = { [key]: holder[key] };
      return;
    default:
      holder[key] = oddValue(dice);
  }
}

function oddValue(dice: Dice): unknown {
  return pick(dice, [
    () => null,
    () => [],
    () => ({}),
    () => '',
    () => -1,
    () => 1.5,
    () => Number.MAX_VALUE,
    () => true,
    () => '\u0000',
    () => '\ud800',
    () => 'x'.repeat(upTo(dice, 70_000)),
    () => '9'.repeat(1 + upTo(dice, 400)),
    () => nested(1 + upTo(dice, 700)),
    () => Array.from({ length: upTo(dice, 300) }, () => ({})),
    () => 'wamid.'.concat('A'.repeat(upTo(dice, 3_000))),
    () => '1e999',
    () => '2999-13-45T99:99:99Z',
    () => ({ __proto__: null, constructor: 1, toString: 2 }),
  ])();
}

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let n = 0; n < depth; n += 1) value = n % 2 === 0 ? [value] : { a: value };
  return value;
}
