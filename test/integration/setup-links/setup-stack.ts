import { randomInt } from 'node:crypto';
import { beforeAll, expect } from 'vitest';
import { insertTenant } from '../../../src/features/accounts/accounts.ts';
import { runSetupStep, type SetupProgress } from '../../../src/features/setup-links/run-set-up.ts';
import { makeSetup, type OwnLink } from '../../../src/features/setup-links/set-up.ts';
import { findSetupLink, type SetupLink } from '../../../src/features/setup-links/setup-link-store.ts';
import {
  createSetupLink,
  revokeSetupLink,
  setupRowId,
} from '../../../src/features/setup-links/setup-links.ts';
import type { SetupCheck, StepTools } from '../../../src/features/setup-links/step-kit.ts';
import { OPERATOR_COMMAND } from '../../../src/platform/audit/audit.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query, queryColumn } from '../../../src/platform/postgres/sql.ts';
import { testSecretBox } from '../../support/test-accounts.ts';
import { databaseOfFile } from '../../support/test-database.ts';
import { APP, type PlayedUpstream, playUpstream } from './played-upstream.ts';

const PRODUCT = 'https://crm.example';
export const PUBLIC_URL = 'https://gateway.example';
const CALLBACK = { callbackUrl: `${PUBLIC_URL}/upstream/webhook`, verifyToken: 'verify-me' };

const GOOD: SetupCheck = { problem: null, isSure: true, attention: [] };

export type SetupStack = ReturnType<typeof setupStack>;

/** Set-up links on a database, with an upstream that is played. */
export function setupStack(database: Database, upstream: PlayedUpstream = playUpstream()) {
  const shared = { database, secretBox: testSecretBox };
  const setup = makeSetup({
    ...shared,
    publicUrl: PUBLIC_URL,
    upstream: { graphUrl: 'https://graph.facebook.com', graphVersion: 'v26.0', signup: APP },
    client: async () => upstream.calls,
  });
  const check = { found: GOOD };
  const tools: StepTools = {
    ...shared,
    graph: upstream.calls,
    signup: APP,
    callback: CALLBACK,
    selfCheck: async () => check.found,
  };
  return { database, upstream, setup, tools, check };
}

/** As `setupStack`, one for the tests of a file: filled before the first of them. */
export function setupStackOfFile(): SetupStack {
  const store = databaseOfFile();
  const stack = {} as SetupStack;
  beforeAll(() => void Object.assign(stack, setupStack(store.database)));
  return stack;
}

/** A tenant of a test, with a WABA at upstream that nobody has here. */
export async function newCustomer({ database, upstream }: SetupStack, numbers = 1) {
  const run = randomInt(1e12, 9e12);
  const tenantId = await insertTenant(database, `Shop ${run}`);
  const ids = Array.from({ length: numbers }, (_, n) => `85${run}${n}`);
  const wabaId = `95${run}`;
  const waba = upstream.waba(wabaId, Object.fromEntries(ids.map((id) => [id, {}])));
  return { tenantId, wabaId, waba, number: ids[0] ?? '', numbers: ids };
}

type Wanted = Partial<Parameters<typeof createSetupLink>[2]>;

export async function newLink({ database }: SetupStack, tenantId: string, wanted: Wanted = {}) {
  return await database.transaction(async (trx) => {
    const given = {
      mode: 'signup' as const,
      connections: ['cloud', 'coexistence'] as const,
      reconnectPhoneNumberId: null,
      successUrl: `${PRODUCT}/done`,
      failureUrl: `${PRODUCT}/failed`,
      clientState: 'visit-42',
      expiresInHours: 168,
      ...wanted,
    };
    const rules = { productOrigins: [PRODUCT], hasSignup: true };
    const tools = { database: trx, actor: OPERATOR_COMMAND, secretBox: testSecretBox };
    const tenant = { userId: tenantId, state: 'active' as const };
    return await createSetupLink(tools, tenant, { ...given, connections: [...given.connections] }, rules);
  });
}

export async function revoke({ database }: SetupStack, tenantId: string, id: string): Promise<void> {
  await database.transaction((trx) =>
    revokeSetupLink({ database: trx, actor: OPERATOR_COMMAND }, tenantId, id),
  );
}

/** A browser that began with a link, and is in upstream's dialog. */
export async function begin({ setup }: SetupStack, token: string) {
  const { id, nonce, dialogUrl } = await setup.start(token);
  const own: OwnLink = { id, nonce };
  const state = new URL(dialogUrl ?? `${PRODUCT}?state=`).searchParams.get('state') ?? '';
  const nonceOf = (row: string) => (row === setupRowId(id) ? nonce : undefined);
  return {
    own,
    state,
    nonceOf,
    finish: (answer: object) => setup.finishDialog({ state, ...answer }, nonceOf),
  };
}

/** A link that upstream has authorized for these WABAs. */
export async function authorizedLink(
  stack: SetupStack,
  tenantId: string,
  wabaIds: string[],
  wanted?: Wanted,
) {
  const { link, token } = await newLink(stack, tenantId, wanted);
  const browser = await begin(stack, token);
  const consent = stack.upstream.consent(wabaIds);
  await browser.finish({ code: consent.code });
  expect((await linkOf(stack, link.id)).state).toBe('authorized');
  return { id: link.id, token, accessToken: consent.token, ...browser };
}

export async function linkOf({ database }: SetupStack, id: string): Promise<SetupLink> {
  const link = await findSetupLink(database, { id });
  if (link === null) throw new Error(`there is no link ${id}`);
  return link;
}

/** Does steps until the run of the link would end, or waits for upstream; `most`: so many. */
export async function run(stack: SetupStack, id: string, most = 20): Promise<SetupProgress> {
  for (let steps = 1; ; steps += 1) {
    const progress = await runSetupStep(stack.tools, id);
    if (progress.end !== null || progress.waitMs > 0 || steps === most) return progress;
  }
}

/** The audited actions of a tenant, in their order. */
export async function actionsOf({ database }: SetupStack, tenantId: string): Promise<string[]> {
  const text = 'select action from audit_log where tenant_id = :tenantId order by id';
  return await queryColumn<string>(database, text, { tenantId });
}

export async function tasksOf({ database }: SetupStack, id: string): Promise<number> {
  const text = 'select workflow_id from workflow_tasks where workflow_id = :workflowId';
  return (await query(database, text, { workflowId: `setUp/sl_${id}` })).length;
}

/** The end of a failed link, in short. */
export async function failureOf(stack: SetupStack, id: string) {
  const { state, failure } = await linkOf(stack, id);
  return [state, failure?.step, failure?.code, failure?.retryable];
}
