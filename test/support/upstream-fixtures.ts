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
