import { Type } from 'typebox';
import { replayOf, replaysOf, switchReplay } from '../../../accounts/replays.ts';
import { accountOf, apiActorOf } from '../../plugins/api-key-auth.ts';
import { SCOPES } from '../../plugins/key-scopes.ts';
import type { ExternalApp, ExternalContext } from '../external-app.ts';
import { listOf } from '../list-of.ts';
import { NoQuery } from '../no-query.ts';
import { accountObjectId } from '../object-id.ts';
import { PAGE_PARAMETERS, pageOf, positionOf, rowsToRead } from '../page.ts';
import { replayDocs, switchDocs } from './replay-docs.ts';
import { Replay, ReplayWithOutcomes, replayJson } from './replay-schemas.ts';

const IdParams = Type.Object({ id: Type.String() });

/** GET /api/external/replays: the newest first. */
export function listReplays(app: ExternalApp, { accounts, cursors }: ExternalContext): void {
  const schema = {
    ...replayDocs.list,
    querystring: Type.Object(PAGE_PARAMETERS, { additionalProperties: false }),
    response: { 200: listOf(Replay) },
  };
  app.get('/api/external/replays', { schema, config: SCOPES.readWebhooks }, async (request) => {
    const { wabaId } = accountOf(request);
    const { limit, cursor } = request.query;
    const scope = [wabaId, 'replays'];
    const [beforeId = null] = positionOf(cursors, scope, cursor) ?? [];
    const found = await replaysOf(accounts, wabaId, { beforeId, limit: rowsToRead(limit) });
    const { rows, ...page } = pageOf(found, limit, ({ replayId }) => cursors.encode(scope, [replayId]));
    return { data: rows.map(replayJson), ...page };
  });
}

/** GET /api/external/replays/:id */
export function getReplay(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...replayDocs.get,
    params: IdParams,
    querystring: NoQuery,
    response: { 200: ReplayWithOutcomes },
  };
  app.get('/api/external/replays/:id', { schema, config: SCOPES.readWebhooks }, async (request) => {
    const { wabaId } = accountOf(request);
    return replayJson(await replayOf(accounts, wabaId, accountObjectId(request.params.id)));
  });
}

/** POST /api/external/replays/:id/pause, …/resume, …/cancel */
export function switchReplays(app: ExternalApp, { accounts }: ExternalContext): void {
  for (const action of ['pause', 'resume', 'cancel'] as const) {
    const schema = {
      ...switchDocs(action),
      params: IdParams,
      querystring: NoQuery,
      body: Type.Object({}, { additionalProperties: false }),
      response: { 200: ReplayWithOutcomes },
    };
    const options = { schema, config: SCOPES.manageWebhooks };
    app.post(`/api/external/replays/:id/${action}`, options, async (request) => {
      const { wabaId } = accountOf(request);
      return replayJson(
        await switchReplay(
          { ...accounts, actor: apiActorOf(request) },
          wabaId,
          accountObjectId(request.params.id),
          action,
        ),
      );
    });
  }
}
