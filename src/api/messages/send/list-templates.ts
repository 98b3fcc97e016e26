import { Type } from 'typebox';
import type { TemplateFilter } from '../../../platform/graph/graph-calls.ts';
import { textOf } from '../../../platform/json/json-members.ts';
import { PAGE_PARAMETERS, pageSize, positionOf } from '../../external/page.ts';
import {
  closed,
  listOf,
  optionalParameter,
  text,
  upstreamObject,
  upstreamText,
} from '../../external/schema-kit.ts';
import { callUpstream } from '../../external/upstream-calls.ts';
import { restOperation } from '../../operations/operation.ts';

const TemplateQuery = closed({
  ...PAGE_PARAMETERS,
  name: optionalParameter(upstreamText(512), 'The name, matched as upstream does.', 'order_ready'),
  status: optionalParameter(
    Type.String({ pattern: '^[A-Z_]{1,64}$' }),
    'For example `APPROVED`, `PENDING`, `REJECTED`, `PAUSED`.',
    'APPROVED',
  ),
  category: optionalParameter(
    Type.String({ pattern: '^[A-Z_]{1,64}$' }),
    '`MARKETING`, `UTILITY` or `AUTHENTICATION`.',
    'UTILITY',
  ),
  language: optionalParameter(
    Type.String({ pattern: '^[a-z]{2,3}(_[A-Za-z]{2,4})?$' }),
    'The code of the language.',
    'en_US',
  ),
});

const Template = Type.Object(
  {
    id: text('990000000000001'),
    name: text('order_ready'),
    language: text('en_US'),
    status: text('APPROVED'),
    category: text('UTILITY'),
    components: Type.Array(upstreamObject({ type: 'BODY', text: 'Hello {{1}}, your order {{2}} is ready.' })),
  },
  { additionalProperties: true },
);

export const listTemplates = restOperation({
  id: 'listTemplates',
  method: 'GET',
  path: '/api/external/templates',
  scope: 'read',
  summary: 'List message templates',
  description:
    'Asks the upstream platform for the templates of the WABA with each request. `components` and further members ' +
    'stand as upstream wrote them; the names of the members of a template are in camelCase.',
  tag: 'Templates',
  errors: ['upstream_refused', 'access_token_missing', 'upstream_unavailable'],
  query: TemplateQuery,
  answers: { 200: { schema: listOf(Template), description: 'A page of templates.' } },
  run: async (call, { limit, cursor, ...filter }) => {
    const { cursors, wabaId } = call;
    const scope = [wabaId, 'templates', JSON.stringify(orderedFilter(filter))];
    const [after = null] = positionOf(cursors, scope, cursor) ?? [];
    const page = await callUpstream(call, wabaId, (client, token) =>
      client.listMessageTemplates(wabaId, { filter, limit: pageSize(limit), after, token }),
    );
    const nextCursor = page.after === null ? null : cursors.encode(scope, [page.after]);
    return { data: page.templates.map(templateJson), hasMore: nextCursor !== null, nextCursor };
  },
});

/** The same for the same filter, in whatever order the query names its parts. */
function orderedFilter({ name, status, category, language }: TemplateFilter) {
  return [name ?? null, status ?? null, category ?? null, language ?? null];
}

function templateJson(template: Readonly<Record<string, unknown>>) {
  const renamed = Object.fromEntries(
    Object.entries(template).map(([name, value]) => [camelCase(name), value]),
  );
  const { id, name, language, status, category, components, ...others } = renamed;
  return {
    id: textOf(id),
    name: textOf(name),
    language: textOf(language),
    status: textOf(status),
    category: textOf(category),
    components: Array.isArray(components) ? components : [],
    ...others,
  };
}

function camelCase(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_match, letter: string) => letter.toUpperCase());
}
