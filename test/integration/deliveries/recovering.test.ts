import { expect, onTestFinished, test } from 'vitest';
import { lookAtTrouble } from '../../../src/engine/deliveries/trouble/look.ts';
import { endpointStatus } from '../../../src/features/endpoints/endpoints.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { testSecretBox } from '../../support/test-accounts.ts';
import { answer, type Behaviour, eventually } from '../../support/webhook-receiver.ts';
import { countQueued, downServer, KEYS, keyOf, LADDER, workerHere } from './down-server.ts';

const REFUSED = 'wamid.a';
const refusing = (others: Behaviour): Behaviour => {
  return (webhook, response) => (keyOf(webhook) === REFUSED ? answer(404) : others)(webhook, response);
};

/** Takes two and holds the next, so that the backlog is seen while it goes out, until `letGo`. */
function takingTwo(): { behaviour: Behaviour; letGo: () => void } {
  const { promise: isLetGo, resolve: letGo } = Promise.withResolvers<void>();
  let taken = 0;
  const behaviour: Behaviour = async (webhook, response) => {
    taken += 1;
    if (taken > 2) await isLetGo;
    return answer(200)(webhook, response);
  };
  return { behaviour, letGo };
}

async function shownOf(database: Database) {
  const [endpoint] = await query<{ id: string; wabaId: string }>(
    database,
    'select id, waba_id as "wabaId" from webhook_endpoints',
  );
  const { id, wabaId } = endpoint ?? { id: '', wabaId: '' };
  const look = await lookAtTrouble({ database, publicUrl: 'https://gateway.example' }, id, null);
  const status = await endpointStatus({ database, secretBox: testSecretBox }, wabaId, id);
  return { look: typeof look === 'string' ? null : look, status };
}

test('an endpoint that is back shows since when, while its backlog goes out, and then only what it refuses itself', async () => {
  const downAt = new Date();
  const { database, receiver, send } = await downServer(
    { whileDown: refusing(answer(503)), maxInFlight: 1 },
    workerHere,
  );
  await eventually('it fails', async () => (await shownOf(database)).look?.state === 'failing');
  const { look: failing, status } = await shownOf(database);
  expect(failing?.details).toContain('**failing** since');
  expect(status.recoveringSince).toBeNull();

  const backAt = new Date();
  const { behaviour, letGo } = takingTwo();
  onTestFinished(letGo);
  receiver.behave(refusing(behaviour));
  await send('wamid.new', 'sent');
  await eventually('it recovers', async () => (await shownOf(database)).look?.state === 'recovering');
  const recovering = await shownOf(database);
  const { failingSince, recoveringSince, waiting } = recovering.status;
  expect(failingSince).toBeNull();
  expect(recoveringSince?.getTime()).toBeGreaterThan(backAt.getTime());
  expect(waiting.oldestAt?.getTime()).toBeGreaterThan(downAt.getTime() - 1_000);
  expect(waiting.count).toBeGreaterThan(0);
  const since = recoveringSince?.toISOString().slice(0, 19).replace('T', ' ');
  expect(recovering.look?.details).toContain(`**recovering** since ${since} UTC`);
  expect(recovering.look?.details).toMatch(/Delivered since then: [1-9]/);
  expect(recovering.look?.details).not.toContain('failing');
  letGo();

  await eventually(
    'only what is refused is left',
    async () => (await countQueued(database)) === LADDER.length,
  );
  await eventually(
    'it waits for its own retry',
    async () => (await shownOf(database)).look?.state === 'retrying',
  );
  const after = await shownOf(database);
  expect(after.status).toMatchObject({ failingSince: null, recoveringSince: null });
  expect(after.look?.details).toContain('Next retries:');
  expect(
    receiver.received.filter((webhook) => keyOf(webhook) !== REFUSED && webhook.status === 200),
  ).toHaveLength((KEYS.length - 1) * LADDER.length + 1);
});
