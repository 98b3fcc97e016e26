import { Type } from 'typebox';
import { readOperationEvents } from '../../ops/feed/operation-events.ts';
import { PAGE_PARAMETERS, walkOf } from '../external/page.ts';
import { closed, listOf, optionalParameter } from '../external/schema-kit.ts';
import { OperationEvent } from './operation-event-schema.ts';
import { platformOperation } from './platform-operation.ts';
import { tenantFilter, tenantIdOf } from './platform-schemas.ts';

export const listOperationEvents = platformOperation({
  id: 'listOperationEvents',
  method: 'GET',
  path: '/api/platform/operation-events',
  scope: 'read',
  summary: 'List operation events',
  description:
    'What changed in the installation, in the order of the commits; an event is written with its change, so none is lost or invented. ' +
    'There is always a `nextCursor`: keep it, and ask again. A page may be empty while `hasMore` is true. Events are kept as long as the audit log, 30 days at least. ' +
    'They hold no data of customers.',
  tag: 'Service',
  errors: ['unknown_tenant'],
  query: closed({
    ...PAGE_PARAMETERS,
    types: optionalParameter(
      Type.String({ maxLength: 500 }),
      'Only events of these types, separated by commas; `tenant.*` is all that begin with `tenant.`.',
      'tenant.*,key.created',
    ),
    tenant: tenantFilter('events'),
  }),
  answers: { 200: { schema: listOf(OperationEvent), description: 'A page of events, the oldest first.' } },
  run: async ({ tools: { database }, cursors }, { types, tenant, ...page }) => {
    const tenantId = await tenantIdOf(database, tenant);
    const walk =
      cursors === null
        ? null
        : walkOf(cursors, ['operation events'], { ...page, order: 'asc' }, { types, tenant });
    const [after = '0'] = walk?.after ?? [];
    const limit = walk?.limit ?? MAX_LISTED;
    const { events, position, hasMore } = await readOperationEvents(database, {
      types: types?.split(',').map((type) => type.trim()) ?? ['*'],
      tenantId,
      after,
      limit,
    });
    return { data: events, hasMore, nextCursor: walk?.nextCursor([position], hasMore) ?? null };
  },
  json: (page) => page,
  example: 'list-operation-events --types tenant.*',
});

const MAX_LISTED = 100;
