import type { RouteOptions } from 'fastify';

type Schema = { properties?: Record<string, unknown> };

/** A registered page or form of the portal. */
export type PageRoute = {
  name: string;
  method: 'GET' | 'POST';
  url: string;
  access: 'open' | 'signedIn' | 'member' | 'admin' | 'operator';
  /** The fields of a form. */
  fields: readonly string[];
  /** The parameters behind the path that it declares. */
  parameters: readonly string[];
  /** It says that it changes nothing. */
  isSearch: boolean;
};

const NO_PAGE = /^\/portal\/(assets\/)?\*$/;

/** Every route of the portal but its files and the page for what there is not, one per method. */
export function pageRoutes(routes: readonly RouteOptions[]): PageRoute[] {
  const ours = routes.filter(({ url }) => /^\/portal(\/|$)/.test(url) && !NO_PAGE.test(url));
  return ours.flatMap(({ method, url, config, schema }) =>
    [method]
      .flat()
      .filter((one) => one !== 'HEAD')
      .map((one) => ({
        name: `${one} ${url}`,
        method: one as PageRoute['method'],
        url,
        access: config?.pageAccess as PageRoute['access'],
        fields: one === 'POST' ? declaredIn(schema?.body, `${one} ${url}`) : [],
        parameters: schema?.querystring === undefined ? [] : declaredIn(schema.querystring, url),
        isSearch: config?.isSearch === true,
      })),
  );
}

/** A form whose fields nobody knows is tried by no test. */
function declaredIn(schema: unknown, name: string): string[] {
  if (schema === undefined) throw new Error(`${name} does not declare its fields`);
  return Object.keys((schema as Schema).properties ?? {});
}

/** The path of a route with its parameters filled in; what is not given keeps its place with something unknown. */
export function pathOf({ url }: Pick<PageRoute, 'url'>, params: Readonly<Record<string, string>>): string {
  return url.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? 'unknown'));
}

/** What people would fill in; everything that a form could ask for. */
const VALUES: Readonly<Record<string, string>> = {
  email: 'somebody@store.example',
  role: 'member',
  name: 'Somebody',
  password: 'a long enough password',
  current: 'not the password',
  next: '/portal',
  note: 'a note',
  decision: 'approve',
  purpose: 'order system',
  scopes: 'read',
  validDays: '90',
  tenant: '',
  wabaId: '900000000000909',
  accessToken: 'EAAtoken',
  url: 'https://receiver.example/new',
  mode: 'open',
  backlog: 'send',
  drop: 'yes',
  confirm: 'yes',
  code: '123456',
  upTo: '1',
  states: 'failed',
  mediaUrlTtlSeconds: '3600',
  mail: 'on',
};

/** A form that is filled in. */
export function filledIn({ fields }: Pick<PageRoute, 'fields'>): Record<string, string> {
  return Object.fromEntries(fields.map((name) => [name, VALUES[name] ?? '']));
}
