import { Type } from 'typebox';
import { countReplay, startReplay } from '../../../accounts/replays.ts';
import { accountOf, apiActorOf } from '../../plugins/api-key-auth.ts';
import { SCOPES } from '../../plugins/key-scopes.ts';
import type { ExternalApp, ExternalContext } from '../external-app.ts';
import { NoQuery } from '../no-query.ts';
import { nullable } from '../nullable.ts';
import { replayDocs } from './replay-docs.ts';
import { Replay, ReplayRequest, replayJson, selectionOf } from './replay-schemas.ts';

const Counts = Type.Record(Type.String(), Type.Integer());

const ReplayCount = Type.Object(
  {
    dryRun: Type.Literal(true),
    deliveries: Type.Integer(),
    byType: Counts,
    byEndpoint: Counts,
    oldest: nullable(Type.String({ format: 'date-time' })),
    newest: nullable(Type.String({ format: 'date-time' })),
    skipped: Type.Object({ open: Type.Integer(), noBody: Type.Integer(), endpointGone: Type.Integer() }),
  },
  { title: 'ReplayCount' },
);

/** POST /api/external/replays: sends deliveries again, or with `dryRun` counts what that would be. */
export function startReplayOfMany(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...replayDocs.start,
    querystring: NoQuery,
    body: ReplayRequest,
    response: { 200: ReplayCount, 201: Replay },
  };
  app.post('/api/external/replays', { schema, config: SCOPES.manageWebhooks }, async (request, reply) => {
    const { wabaId, keyId } = accountOf(request);
    const selection = selectionOf(request.body);
    if (request.body.dryRun === true) {
      const { oldest, newest, ...count } = await countReplay(accounts, wabaId, selection);
      const times = { oldest: oldest?.toISOString() ?? null, newest: newest?.toISOString() ?? null };
      return { dryRun: true as const, ...count, ...times };
    }
    const replay = await startReplay(
      { ...accounts, actor: apiActorOf(request) },
      wabaId,
      selection,
      `API key ${keyId}`,
    );
    reply.code(201).header('location', `/api/external/replays/${replay.replayId}`);
    return replayJson(replay);
  });
}
