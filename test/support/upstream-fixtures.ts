import { readdirSync, readFileSync } from 'node:fs';

const FOLDER = new URL('../fixtures/upstream/', import.meta.url);

/** The exact bytes of a fixture body, `in_text` for in_text.json. */
export function fixtureBody(name: string): Buffer {
  return readFileSync(new URL(`${name}.json`, FOLDER));
}

/** Names of all fixture bodies. */
export function fixtureNames(): string[] {
  return readdirSync(FOLDER)
    .filter((name) => name.endsWith('.json') && name !== 'scenarios.json')
    .map((name) => name.slice(0, -'.json'.length))
    .sort();
}

/** As `fixtureBody`, sent to a number of another tenant. */
export function fixtureBodyTo({ wabaId, number }: { wabaId: string; number: string }, name: string): Buffer {
  const text = fixtureBody(name).toString();
  return Buffer.from(text.replaceAll('900000000000101', wabaId).replaceAll('800000000000111', number));
}
