import { JsonSyntaxError } from '../../platform/json/json-scan.ts';
import {
  items,
  type JsonNode,
  members,
  parseJson,
  sourceWithEdits,
  stringOf,
  type TextEdit,
} from '../../platform/json/json-text.ts';

export type OwnAddress = {
  /** Of the facade with its version, without a slash at the end. */
  baseUrl: string;
  /** Upstream's access token, which no answer may hold. */
  token: string;
  /** The API key of a client that put it into the query: it finds its key in the addresses of further pages. */
  queryToken: string | null;
};

/**
 * An answer of upstream as the tenant gets it: addresses of further pages lead to the facade and have no token of upstream. Null: it
 * is no JSON, or still holds the token.
 */
export function answerForTenant(text: string, own: OwnAddress): string | null {
  try {
    const root = parseJson(text, { deepNodes: 'mark' });
    const edited = sourceWithEdits(root, addressEdits(root, own));
    return holdsToken(edited, own.token) ? null : edited;
  } catch (error) {
    if (error instanceof JsonSyntaxError) return null;
    throw error;
  }
}

function addressEdits(node: JsonNode, own: OwnAddress): TextEdit[] {
  if (node.kind === 'array') return items(node).flatMap((item) => addressEdits(item, own));
  return members(node).flatMap(({ name, value }) => {
    const isPage = ['next', 'previous'].includes(stringOf(name) ?? '');
    const text = isPage ? stringOf(value) : null;
    if (text === null) return addressEdits(value, own);
    return [{ start: value.start, end: value.end, text: JSON.stringify(pageAddress(text, own)) }];
  });
}

/** What is no address stays as it is. */
function pageAddress(text: string, { baseUrl, queryToken }: OwnAddress): string {
  const url = URL.parse(text);
  if (url === null) return text;
  for (const name of ['access_token', 'appsecret_proof']) url.searchParams.delete(name);
  if (queryToken !== null) url.searchParams.set('access_token', queryToken);
  const path = url.pathname.replace(/^\/v[\d.]+(?=\/)/, '');
  return `${baseUrl}${path}${url.search}`;
}

/** As it is, or as a URL writes it, with or without escaped slashes. */
function holdsToken(text: string, token: string): boolean {
  const plain = text.replaceAll('\\/', '/');
  return plain.includes(token) || plain.includes(encodeURIComponent(token));
}
