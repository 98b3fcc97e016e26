import { readdirSync, readFileSync } from 'node:fs';

const WABA = '900000000000101';
const NUMBER = '800000000000111';
const FOLDER = new URL('../fixtures/upstream/', import.meta.url);

/** The exact bytes of a fixture body, `in_text` for in_text.json. */
export function fixtureBody(name: string): Buffer {
  return readFileSync(new URL(`${name}.json`, FOLDER));
}

/** A fixture body as upstream would send it for this tenant, whose ids stand where the fixtures' were. */
export function fixtureFor(tenant: { wabaId: string; number: string }, name: string): Buffer {
  const text = fixtureBody(name).toString('latin1');
  return Buffer.from(text.replaceAll(WABA, tenant.wabaId).replaceAll(NUMBER, tenant.number), 'latin1');
}

/** Names of all fixture bodies. */
export function fixtureNames(): string[] {
  return readdirSync(FOLDER)
    .filter((name) => name.endsWith('.json') && name !== 'scenarios.json')
    .map((name) => name.slice(0, -'.json'.length))
    .sort();
}
