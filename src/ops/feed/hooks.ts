import { findEndpointAt } from '../../engine/endpoint/store.ts';
import { newWebhookSecret } from '../../engine/endpoint/webhook-signature.ts';
import { checkReference } from '../../features/accounts/external-tenants.ts';
import type { UrlRules } from '../../features/endpoints/url-check.ts';
import { type Audited, recordBy } from '../../platform/audit/audit.ts';
import type { SealedDatabase } from '../../platform/crypto/sealed-database.ts';
import { checkEndpointUrl } from '../../platform/http/outbound-url.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { uuidV7 } from '../../platform/public-ids.ts';
import { checkDescription, RequestError } from '../../platform/request-input.ts';
import {
  countHooks,
  findHook,
  HOOK_SECRET,
  type HookValues,
  insertHook,
  lockHooks,
  removeHook,
  replaceHookSecret,
  requestTest,
  type StoredHook,
  updateHook,
} from './hook-store.ts';
import { checkEventTypes } from './operation-events.ts';

const MAX_HOOKS = 5;

/** As the audit log names it. */
export function hookName(ref: string): string {
  return `operations hook ${ref}`;
}

/** Throws RequestError: `invalid_value`, `unknown_operations_hook`. */
export async function knownHook(database: Database, ref: string): Promise<StoredHook> {
  const hook = await findHook(database, checkReference('hookRef', ref));
  if (hook === null) throw new RequestError('unknown_operations_hook', 'There is no such hook.');
  return hook;
}

type Tools = SealedDatabase & Audited;

/** What is left out stays; a new hook gets every event, and is enabled. */
export type GivenHook = Pick<HookValues, 'url'> & Partial<HookValues>;

/** `secret` is what signatures are verified with; it is shown this once, and null where the hook was known. */
export type PutHook = StoredHook & { secret: string | null };

/**
 * Has operation events sent to a URL, those from now on. Throws RequestError: `invalid_value`, `too_many_operations_hooks`,
 * `url_is_webhook_endpoint`, or the code of the refused URL.
 */
export async function putHook(
  tools: Tools & { urlRules: UrlRules },
  ref: string,
  given: GivenHook,
): Promise<PutHook> {
  checkReference('hookRef', ref);
  if (given.types !== undefined) checkEventTypes(given.types);
  const known = await findHook(tools.database, ref);
  const url = await checkHookUrl(tools, given.url, known?.url ?? null);
  return await tools.database.transaction(async (database) => {
    await lockHooks(database);
    const present = await findHook(database, ref);
    const before = present ?? { types: ['*'], description: '', isEnabled: true };
    const values = {
      url,
      types: given.types ?? before.types,
      description: checkDescription('The description of the hook', given.description ?? before.description),
      isEnabled: given.isEnabled ?? before.isEnabled,
    };
    const secret = present === null ? newWebhookSecret() : null;
    if (secret === null) await updateHook(database, { ref, ...values });
    else {
      if ((await countHooks(database)) >= MAX_HOOKS)
        throw new RequestError(
          'too_many_operations_hooks',
          `An installation has at most ${MAX_HOOKS} hooks.`,
        );
      const secretSealed = tools.secretBox.seal(secret, HOOK_SECRET.place(ref));
      await insertHook(database, { ref, ...values, secretSealed });
    }
    const detail = { host: new URL(url).host, types: values.types.join(', '), isEnabled: values.isEnabled };
    await note({ ...tools, database }, secret === null ? 'updated' : 'created', ref, detail);
    return { ...(await knownHook(database, ref)), secret };
  });
}

/** As the URL of a tenant's endpoint, and not the one of such an endpoint. */
async function checkHookUrl(
  { database, urlRules }: { database: Database; urlRules: UrlRules },
  text: string,
  presentUrl: string | null,
): Promise<string> {
  const { lookupsPerMinute: _, proxy: __, ...rules } = urlRules;
  const verdict = await checkEndpointUrl(text, { ...rules, presentUrl });
  if (!verdict.ok) throw new RequestError(verdict.code, verdict.message);
  const endpointId = await findEndpointAt(database, verdict.url);
  if (endpointId === null) return verdict.url;
  throw new RequestError(
    'url_is_webhook_endpoint',
    'A webhook endpoint of a tenant has this URL. Use a different URL for operation events.',
  );
}

/** A second time, it is unknown. Throws RequestError: `invalid_value`, `unknown_operations_hook`. */
export async function deleteHook(tools: { database: Database } & Audited, ref: string): Promise<void> {
  await change(tools, ref, 'deleted', async (database) => {
    await removeHook(database, ref);
    return {};
  });
}

/**
 * During the overlap both secrets sign. `secret` is shown this once; repeated, it makes a further one. Throws RequestError:
 * `invalid_value`, `unknown_operations_hook`.
 */
export async function rotateHookSecret(
  tools: Tools,
  ref: string,
  overlapHours: number,
): Promise<{ ref: string; secret: string; previousSecretEndsAt: Date | null }> {
  const secret = newWebhookSecret();
  let previousSecretEndsAt: Date | null = null;
  await change(tools, ref, 'secret_rotated', async (database) => {
    const sealed = tools.secretBox.seal(secret, HOOK_SECRET.place(ref));
    previousSecretEndsAt = await replaceHookSecret(database, { ref, sealed, overlapHours });
    return { overlapHours };
  });
  return { ref, secret, previousSecretEndsAt };
}

/** Has one test event sent, also to a hook that is disabled. Throws RequestError: `invalid_value`, `unknown_operations_hook`. */
export async function testHook(tools: { database: Database } & Audited, ref: string): Promise<void> {
  await change(tools, ref, 'tested', async (database) => {
    await requestTest(database, ref, uuidV7(Date.now()));
    return {};
  });
}

type Detail = Parameters<typeof recordBy>[2]['detail'];

async function change(
  { database, actor }: { database: Database } & Audited,
  ref: string,
  action: string,
  work: (trx: Parameters<typeof lockHooks>[0]) => Promise<Detail>,
): Promise<void> {
  await database.transaction(async (trx) => {
    await lockHooks(trx);
    await knownHook(trx, ref);
    await note({ database: trx, actor }, action, ref, await work(trx));
  });
}

async function note(
  { database, actor }: { database: Database } & Audited,
  action: string,
  ref: string,
  detail: Detail,
): Promise<void> {
  const target = hookName(ref);
  await recordBy(database, actor, {
    tenantId: null,
    wabaId: null,
    action: `operations_hook.${action}`,
    target,
    detail,
  });
}
