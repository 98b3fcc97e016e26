import { Type } from 'typebox';
import { walkTemplates } from '../../features/accounts/template-walk.ts';
import { listTemplates, type MessageTemplate, templatesListedAt } from '../../features/accounts/templates.ts';
import { membersOf } from '../../platform/json/json-members.ts';
import type { ExternalContext } from '../external/external-app.ts';
import { PAGE_PARAMETERS, pageOf, pageSize, positionOf } from '../external/page.ts';
import {
  closed,
  dateTime,
  listOf,
  named,
  nullable,
  optionalParameter,
  text,
  upstreamObject,
  upstreamText,
} from '../external/schema-kit.ts';
import { callUpstream } from '../external/upstream-calls.ts';
import { restOperation } from '../operations/operation.ts';

const Capitals = Type.String({ pattern: '^[A-Z_]{1,64}$' });

const TemplateQuery = closed({
  ...PAGE_PARAMETERS,
  name: optionalParameter(upstreamText(512), 'The name, all of it.', 'order_ready'),
  status: optionalParameter(
    Capitals,
    'For example `APPROVED`, `PENDING`, `REJECTED`, `PAUSED`, `DISABLED`.',
    'APPROVED',
  ),
  category: optionalParameter(Capitals, '`MARKETING`, `UTILITY` or `AUTHENTICATION`.', 'UTILITY'),
  language: optionalParameter(
    Type.String({ pattern: '^[a-z]{2,3}([_-][A-Za-z]{2,4})?$' }),
    'The code of the language.',
    'en_US',
  ),
  refresh: optionalParameter(
    Type.Enum(['true', 'false']),
    '`true`: copies all templates from upstream first; with the first page only.',
    'true',
  ),
});

const KeptTemplate = named('MessageTemplate', {
  id: text('990000000000001'),
  name: text('order_ready'),
  language: text('en_US'),
  status: nullable(Type.String(), 'APPROVED'),
  category: nullable(Type.String(), 'UTILITY'),
  quality: nullable(Type.String(), 'GREEN'),
  rejectedReason: nullable(Type.String()),
  /** As upstream lists them; null: the template changed, and was not listed since. */
  components: nullable(
    Type.Array(upstreamObject({ type: 'BODY', text: 'Hello {{1}}, your order {{2}} is ready.' })),
  ),
  updatedAt: dateTime('2026-11-21T03:00:00.000Z'),
});

export const listMessageTemplates = restOperation({
  id: 'listMessageTemplates',
  method: 'GET',
  path: '/api/external/message-templates',
  scope: 'read',
  summary: 'List the copy of the message templates',
  description:
    'The templates of the WABA as the service knows them, by name and language: copied from upstream once a day, and kept up to date by ' +
    'its reports. `refresh` copies them now. `GET /api/external/templates` asks upstream with each request.',
  tag: 'Templates',
  errors: ['upstream_refused', 'access_token_missing', 'upstream_unavailable'],
  query: TemplateQuery,
  answers: { 200: { schema: listOf(KeptTemplate), description: 'A page of templates.' } },
  run: async (call, { limit, cursor, refresh, ...search }) => {
    const { database, cursors, wabaId } = call;
    const { name = null, status = null, category = null, language = null } = search;
    const scope = [wabaId, 'message-templates', JSON.stringify([name, status, category, language])];
    const after = positionOf(cursors, scope, cursor) ?? [];
    if (refresh === 'true' && after.length === 0) await refreshTemplates(call, wabaId);
    const rows = await listTemplates(database, wabaId, search, { after, limit: pageSize(limit) + 1 });
    const page = pageOf(rows, limit, (row) =>
      cursors.encode(scope, [row.name, row.language, row.templateId]),
    );
    const { rows: found, ...more } = page;
    return { data: found.map(templateJson), ...more };
  },
});

/** What a request may wait for; the daily walk copies what is left. */
const WALK_MS = 8_000;
/** Upstream counts each page; who asks again at once gets what is known. */
const FRESH_MS = 10_000;

async function refreshTemplates(context: ExternalContext, wabaId: string): Promise<void> {
  const { database } = context;
  const listedAt = await templatesListedAt(database, wabaId);
  if (listedAt !== null && Date.now() - listedAt.getTime() < FRESH_MS) return;
  const until = Date.now() + WALK_MS;
  await callUpstream(context, wabaId, async (client, token) => {
    await walkTemplates(database, wabaId, { client, token }, () => Date.now() < until);
  });
}

function templateJson({ templateId, content, ...template }: MessageTemplate) {
  const { components = null } = membersOf(content === null ? null : JSON.parse(content));
  return { id: templateId, ...template, components: components as Record<string, unknown>[] | null };
}
