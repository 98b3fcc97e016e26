import { SETUP_TOKEN, saveSetupLink } from '../../../src/features/setup-links/setup-link-store.ts';
import { createSetupLink, revokeSetupLink } from '../../../src/features/setup-links/setup-links.ts';
import { goOn, setUpWorkflowId } from '../../../src/features/setup-links/setup-task.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { publicSetupId } from '../../../src/platform/public-ids.ts';
import { testSecretBox } from '../test-accounts.ts';
import { eventually } from '../webhook-receiver.ts';
import { ended, type Recorded, started } from './record-deliveries.ts';
import { ACCESS_TOKEN, oneRow, type RecordingStack, WABA } from './recording-stack.ts';

const PRODUCT = 'https://crm.example';

/** Runs of `setUpNumber`. */
export async function recordSetUps(stack: RecordingStack): Promise<Recorded> {
  return {
    'set-up-number-done': await done(stack),
    'set-up-number-refused': await refused(stack),
    'set-up-number-revoked': await revoked(stack),
  };
}

/** A link with steps, as it is when the customer has given a token. */
async function authorized(stack: RecordingStack, token: string): Promise<{ id: string; tenantId: string }> {
  const { database } = stack;
  const text = 'select tenant_id as "tenantId" from wabas where waba_id = :waba';
  const { tenantId } = await oneRow<{ tenantId: string }>(database, text, { waba: WABA });
  const id = await database.transaction(async (trx) => {
    const wanted = {
      mode: 'steps' as const,
      connections: ['cloud' as const],
      reconnectPhoneNumberId: '800000000000111',
      successUrl: PRODUCT,
      failureUrl: PRODUCT,
      clientState: null,
      expiresInHours: 1,
    };
    const rules = { productOrigins: [PRODUCT], hasSignup: false };
    const tenant = { userId: tenantId, state: 'active' as const };
    const { link } = await createSetupLink(
      { database: trx, actor: SYSTEM, secretBox: testSecretBox },
      tenant,
      wanted,
      rules,
    );
    const given = {
      state: 'authorized' as const,
      wabaId: WABA,
      tokenSealed: testSecretBox.seal(token, SETUP_TOKEN.place(link.id)),
      authorizedAt: new Date(),
    };
    await saveSetupLink(trx, link.id, given);
    await goOn(trx, { ...link, ...given });
    return link.id;
  });
  await started(stack, setUpWorkflowId(id));
  return { id, tenantId };
}

async function done(stack: RecordingStack): Promise<string> {
  const { id } = await authorized(stack, ACCESS_TOKEN);
  await ended(stack, setUpWorkflowId(id));
  return setUpWorkflowId(id);
}

async function refused(stack: RecordingStack): Promise<string> {
  const { id } = await authorized(stack, 'a-token-of-nobody');
  await ended(stack, setUpWorkflowId(id));
  return setUpWorkflowId(id);
}

/** While it waits for an upstream that is away. */
async function revoked(stack: RecordingStack): Promise<string> {
  const faults = `${stack.upstreamUrl}/sandbox/faults`;
  const fault = JSON.stringify({ match: 'waba_subscription', kind: 'status', status: 503 });
  const headers = { 'content-type': 'application/json' };
  await fetch(`${stack.upstreamUrl}/v26.0/${WABA}/subscribed_apps`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${ACCESS_TOKEN}` },
  });
  await fetch(faults, { method: 'POST', headers, body: fault });
  const { id, tenantId } = await authorized(stack, ACCESS_TOKEN);
  const workflowId = setUpWorkflowId(id);
  await eventually('it waits', async () => {
    const { events } = await stack.client.workflow.getHandle(workflowId).fetchHistory();
    return (events ?? []).some((event) => event.timerStartedEventAttributes);
  });
  await stack.database.transaction((trx) =>
    revokeSetupLink({ database: trx, actor: SYSTEM }, tenantId, publicSetupId(id)),
  );
  await ended(stack, workflowId);
  await fetch(faults, { method: 'DELETE' });
  return workflowId;
}
