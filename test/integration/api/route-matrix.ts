import { once } from 'node:events';
import type { InjectOptions, RouteOptions } from 'fastify';
import type { ApiKeyScope } from '../../../src/features/keys/api-key.ts';
import { comparable, type TestApi } from './api-harness.ts';

type Schema = {
  properties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
};

/** A registered route with one method. */
export type MatrixRoute = {
  name: string;
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  url: string;
  operationId: string;
  /** Scopes of which a key needs one; undefined for a route that needs no key. */
  scopes: readonly ApiKeyScope[] | undefined;
  hasId: boolean;
  query: Record<string, Schema>;
  body: Schema | undefined;
  /** Bodies as the documentation shows them. */
  exampleBodies: readonly unknown[];
};

/** Texts that no object has for an id. */
export const IMPOSSIBLE_IDS = [
  ...['0', '-1', '1.0', '1e3', '0x1', '9223372036854775807', '9223372036854775808', '9'.repeat(5000)],
  ...['abc', '\u0000', '1\u0000', ' ', '💩', "1'--", '١', 'null', '__proto__', '../me', 'evt_', 'evt_x'],
  ...[`evt_${'0'.repeat(32)}`, `evt_${'f'.repeat(32)}`, `dlv_${'0'.repeat(32)}`],
];

/** The routes of `/graph/…`. */
export const isOfFacade = (url: string) => /^\/graph(\/|$)/.test(url);

/** Every registered route, one per method. */
export function matrixRoutes(routes: readonly RouteOptions[]): MatrixRoute[] {
  return routes.flatMap(({ method, url, schema, config }) =>
    [method].flat().map((one) => ({
      name: `${one} ${url}`,
      method: one as MatrixRoute['method'],
      url,
      operationId: String((schema as { operationId?: string } | undefined)?.operationId ?? ''),
      scopes: (config as { scopes?: readonly ApiKeyScope[] } | undefined)?.scopes,
      hasId: url.includes(':'),
      query: (schema?.querystring as Schema | undefined)?.properties ?? {},
      body: schema?.body as Schema | undefined,
      exampleBodies: Object.values(
        (schema as { 'x-docs'?: { requests?: Record<string, unknown> } } | undefined)?.['x-docs']?.requests ??
          {},
      ),
    })),
  );
}

/** The path of a route with an id in it. */
export function pathWith(route: MatrixRoute, id: string): string {
  return route.url.replace(/:\w+/, encodeURIComponent(id));
}

export type Answer = { status: number; body: string; headers: Record<string, unknown> };

type Payload = { authorization?: string; body?: unknown; headers?: Record<string, string>; query?: string };

/** Sends a request to a route and returns what of the answer does not differ from request to request. */
export async function ask(api: TestApi, route: MatrixRoute, path: string, given: Payload): Promise<Answer> {
  const { authorization, body, query = '' } = given;
  const request = {
    method: route.method,
    url: `${path}${query}`,
    headers: { ...given.headers, ...(authorization !== undefined && { authorization }) },
    ...(body !== undefined && { payload: body as object }),
  };
  const response = isStream(route) ? await beginningOf(api, request) : await api.app.inject(request);
  const { headers, ...answer } = comparable(response);
  const lasting = Object.entries(headers).filter(([name]) => !/^(x-)?ratelimit/.test(name));
  return { ...answer, headers: Object.fromEntries(lasting) };
}

/** Whether a successful answer of the route has no end. */
export function isStream({ operationId, method }: MatrixRoute): boolean {
  return operationId === 'streamEvents' && method === 'GET';
}

/** The answer as far as its first block, or the whole answer when it is an error; then the client is gone. */
async function beginningOf(api: TestApi, request: InjectOptions) {
  const response = await api.app.inject({ ...request, payloadAsStream: true });
  const { statusCode, headers } = response;
  let body = '';
  for await (const chunk of response.stream()) {
    body += String(chunk);
    if (statusCode === 200 && body.includes('\n\n')) break;
  }
  if (statusCode === 200) {
    const closed = once(response.raw.res, 'close');
    response.raw.res.destroy();
    await closed;
  }
  return { statusCode, headers, body };
}

const ID_NAME = /(^id|Id|_id)s?$/;

/** The members of a body whose names say that they hold ids; each as a function that fills it in. */
export function idMembers(schema: Schema | undefined): Map<string, (id: string) => Record<string, unknown>> {
  const forms = [schema, ...(schema?.anyOf ?? [])];
  const members = forms.flatMap((form) => Object.entries(form?.properties ?? {}));
  const named = members.filter(([name]) => ID_NAME.test(name));
  return new Map(
    named.map(([name, member]) => {
      const isList = JSON.stringify(member).includes('"items"');
      return [name, (id) => ({ [name]: isList ? [id] : id })];
    }),
  );
}

/** An id of the same form that nothing has: one for all ids of that form, whose day it keeps. */
export function unknownIdLike(id: string): string {
  if (/^\d+$/.test(id)) return `8${'7'.repeat(id.length - 1)}`;
  // The version of a UUID stays too.
  const [, prefix, first, dash = '', version] =
    /^([a-z]+_|)([0-9a-f]{8})(-?)[0-9a-f]{4}-?([0-9a-f])[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$/.exec(id) ??
    [];
  if (first !== undefined)
    return `${prefix}${[first, 'ffff', `${version}fff`, 'bfff', 'f'.repeat(12)].join(dash)}`;
  return [...id].reverse().join('');
}

/** Asks once for all ids that have one unknown id. */
export function askedOnce<Found>(find: (id: string) => Promise<Found>): (id: string) => Promise<Found> {
  const known = new Map<string, Promise<Found>>();
  return (id) => {
    const unknown = unknownIdLike(id);
    const found = known.get(unknown) ?? find(unknown);
    known.set(unknown, found);
    return found;
  };
}
