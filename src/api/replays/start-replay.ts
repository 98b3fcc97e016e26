import { Type } from 'typebox';
import { countReplay, startReplay } from '../../replays/replays.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { count, dateTime, NoQuery, nullable } from '../external/schema-kit.ts';
import { accountOf, apiActorOf } from '../keys/api-key-auth.ts';
import { SCOPES } from '../keys/key-scopes.ts';
import { documented } from '../openapi/documented.ts';
import { Replay, ReplayRequest, replayJson, selectionOf } from './replay-schemas.ts';

const ReplayCount = Type.Object(
  {
    dryRun: Type.Literal(true),
    deliveries: count(1_250),
    byType: Type.Record(Type.String(), Type.Integer(), { examples: [{ message: 1_000, payment: 250 }] }),
    byEndpoint: Type.Record(Type.String(), Type.Integer(), { examples: [{ 3: 1_250 }] }),
    oldest: nullable(dateTime(), '2026-11-19T00:00:04.120Z'),
    newest: nullable(dateTime(), '2026-11-21T09:29:58.001Z'),
    skipped: Type.Object({ open: count(2), noBody: Type.Integer(), endpointGone: Type.Integer() }),
  },
  { title: 'ReplayCount' },
);

const docs = documented({
  operationId: 'startReplay',
  summary: 'Send many events again',
  description:
    'Either `deliveryIds`, or a filter of at least one other member. `not_sent` in `states` means events that an endpoint takes now and never had; without `states` they are part of it. What is sent again goes behind new events, with the same `webhook-id`. With `dryRun` it is counted only.',
  tag: 'Replays',
  errors: [
    'unknown_endpoint',
    'unknown_delivery',
    'nothing_to_replay',
    'too_many_replays',
    'replay_too_large',
  ],
  requests: {
    outage: { endpointId: '3', states: ['failed', 'dropped'], from: '2026-11-19T00:00:00Z' },
    deliveries: { deliveryIds: ['dlv_019aa2b37c4d7e8f9a0b1c2d3e4f5062'] },
    count: { eventTypes: ['message', 'payment'], from: '2026-11-19T00:00:00Z', dryRun: true },
  },
  answers: {
    200: { description: 'With `dryRun`: what would be sent.' },
    201: { description: 'The replay has begun.', headers: ['Location'] },
  },
});

/** POST /api/external/replays: sends deliveries again, or with `dryRun` counts what that would be. */
export function startReplayOfMany(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...docs,
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
