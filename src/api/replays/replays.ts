import { Type } from 'typebox';
import { replayOf, replaysOf, switchReplay } from '../../replays/replays.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { accountObjectId } from '../external/object-id.ts';
import { PAGE_PARAMETERS, pageOf, positionOf, rowsToRead } from '../external/page.ts';
import { listOf, NoBody, NoQuery } from '../external/schema-kit.ts';
import { accountOf, apiActorOf } from '../keys/api-key-auth.ts';
import { SCOPES } from '../keys/key-scopes.ts';
import { documented } from '../openapi/documented.ts';
import { Replay, ReplayParams, ReplayWithOutcomes, replayJson } from './replay-schemas.ts';

/** GET /api/external/replays: the newest first. */
export function listReplays(app: ExternalApp, { accounts, cursors }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'listReplays',
      summary: 'List replays',
      description: 'The newest first.',
      tag: 'Replays',
      answers: { 200: { description: 'A page of replays.' } },
    }),
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
    ...documented({
      operationId: 'getReplay',
      summary: 'Get a replay',
      description: 'How far it is, and what came of what it sent.',
      tag: 'Replays',
      answers: { 200: { description: 'The replay.' } },
    }),
    params: ReplayParams,
    querystring: NoQuery,
    response: { 200: ReplayWithOutcomes },
  };
  app.get('/api/external/replays/:id', { schema, config: SCOPES.readWebhooks }, async (request) => {
    const { wabaId } = accountOf(request);
    return replayJson(await replayOf(accounts, wabaId, accountObjectId(request.params.id)));
  });
}

const SWITCHES = [
  {
    action: 'pause',
    summary: 'Pause a replay',
    description: 'Queues nothing more until it is resumed.',
    state: 'paused',
  },
  {
    action: 'resume',
    summary: 'Resume a replay',
    description: 'Goes on where it was paused.',
    state: 'running',
  },
  {
    action: 'cancel',
    summary: 'Cancel a replay',
    description: 'Queues nothing more, for good. What is queued is still sent.',
    state: 'cancelled',
  },
] as const;

/** POST /api/external/replays/:id/pause, …/resume, …/cancel */
export function switchReplays(app: ExternalApp, { accounts }: ExternalContext): void {
  for (const { action, state, ...said } of SWITCHES) {
    const schema = {
      ...documented({
        operationId: `${action}Replay`,
        ...said,
        tag: 'Replays',
        errors: ['replay_finished'],
        requests: { empty: {} },
        answers: { 200: { description: 'The replay as it is now.', example: { state } } },
      }),
      params: ReplayParams,
      querystring: NoQuery,
      body: NoBody,
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
