import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { ApiKeyScope } from '../../src/features/keys/api-key.ts';

/** Requests of software that others wrote, and how its webhook end behaves: test/fixtures/cloud-api/README.md. */
export type Product = {
  product: string;
  /** Its page, below docs/tenants/cloud-api. */
  page: string;
  /** What its key needs, as its page says. */
  scopes: ApiKeyScope[];
  source: string[];
  calls: ProductCall[];
  webhook: ProductWebhook;
};

export type ProductCall = {
  name: string;
  method: 'GET' | 'POST' | 'DELETE';
  path: string;
  token?: 'query';
  body?: Record<string, unknown>;
  form?: [name: string, value: string][];
  urlEncoded?: Record<string, string>;
  /** Of a refusal; without them the call works. */
  status?: number;
  code?: number;
  reads?: string[];
  equals?: Record<string, unknown>;
  /** The response's `id` is a value for the calls that follow. */
  keeps?: string;
};

export type ProductWebhook = {
  challenge: 'text' | 'number';
  checksSignature: boolean;
  reads: Record<'text' | 'image' | 'status', string[]>;
};

const NAMES = ['chatwoot', 'n8n', 'typebot', 'evolution-api', 'frappe_whatsapp'];

export const PRODUCTS: readonly Product[] = NAMES.map((name) =>
  JSON.parse(
    readFileSync(fileURLToPath(new URL(`../fixtures/cloud-api/${name}.json`, import.meta.url)), 'utf8'),
  ),
);

/** The member at a path such as `entry.0.changes`; undefined when there is none. */
export function memberAt(value: unknown, path: string): unknown {
  let current = value;
  for (const name of path.split('.')) {
    if (typeof current !== 'object' || current === null) return undefined;
    current = (current as Record<string, unknown>)[name];
  }
  return current;
}

/** Replaces `{name}` in every text of a value. */
export function filled<T>(value: T, values: Readonly<Record<string, string>>): T {
  const text = JSON.stringify(value).replace(
    /\{([a-z ]+)\}/g,
    (whole, name: string) => values[name] ?? whole,
  );
  return JSON.parse(text);
}
