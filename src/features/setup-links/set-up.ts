import { lazyInstallationKey } from '../../platform/crypto/installation-secret.ts';
import type { SealedDatabase } from '../../platform/crypto/sealed-database.ts';
import { newSecretToken, secretTokenHash } from '../../platform/crypto/secret-box.ts';
import type { AccountClient } from '../../platform/graph/graph-client.ts';
import { GraphError } from '../../platform/graph/graph-error.ts';
import { dialogUrl, isRefusal, type SignupApp } from '../../platform/graph/graph-setup.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { publicSetupId } from '../../platform/public-ids.ts';
import {
  checkAccessToken,
  checkingMember,
  checkUpstreamId,
  invalidValue,
  RequestError,
} from '../../platform/request-input.ts';
import { findTenant } from '../accounts/accounts.ts';
import { saveNumberPin } from '../accounts/number-pins.ts';
import { isSuspended } from '../accounts/suspension.ts';
import { dialogState, linkOfState, nonceHash } from './dialog-state.ts';
import {
  type FailureCode,
  findSetupLink,
  lockSetupLink,
  SETUP_TOKEN,
  type SetupChange,
  type SetupFailure,
  type SetupLink,
  type SetupState,
  saveSetupLink,
} from './setup-link-store.ts';
import { notConfigured, setupRowId } from './setup-links.ts';
import { noteLink } from './setup-notes.ts';
import { goOn } from './setup-task.ts';
import {
  isOwnLink,
  isTooEarly,
  MOST_PINS,
  refusalOf,
  type SetupVisit,
  type TenantOfLink,
  visitOf,
} from './setup-visit.ts';

export type SetupTools = SealedDatabase & {
  publicUrl: string;
  upstream: { graphUrl: string; graphVersion: string; signup: SignupApp | null };
  /** The client for upstream, opened with the first call. */
  client(): Promise<Pick<AccountClient, 'exchangeCode' | 'listPhoneNumbers'>>;
};

/** Where upstream's dialog leads back to: the app must list it. */
export const SETUP_CALLBACK_PATH = '/setup/callback';

/** A link in the browser that began with it. */
export type OwnLink = { id: string; nonce: string };

/** What a browser has in its cookie for a link, by the id of its row. */
type NonceOf = (id: string) => string | undefined;

/** What upstream's dialog leads back with. */
export type DialogAnswer = Partial<
  Record<
    'state' | 'code' | 'error' | 'error_reason' | 'error_code' | 'error_description' | 'current_step',
    string
  >
>;

export type Setup = ReturnType<typeof makeSetup>;

/** What the customer does with a link. Ids that the browser sends decide nothing: upstream's answers for the token do. */
export function makeSetup(tools: SetupTools) {
  const stateKey = lazyInstallationKey(tools, 'set-up dialogs');
  return {
    see: (by: { token: string; nonceOf: NonceOf } | OwnLink) => see(tools.database, by),
    start: (by: string | OwnLink) => start(tools, stateKey, by),
    finishDialog: (answer: DialogAnswer, nonceOf: NonceOf) => finishDialog(tools, stateKey, answer, nonceOf),
    giveToken: (own: OwnLink, given: { wabaId: string; accessToken: string }) => giveToken(tools, own, given),
    choose: (own: OwnLink, id: string) => choose(tools, own, id),
    givePin: (own: OwnLink, pin: string) => givePin(tools, own, pin),
    retry: (own: OwnLink, from?: 'subscribe' | 'register') => retry(tools, own, from),
  };
}

/** Looks at a link and uses nothing up; null: there is none such. */
async function see(
  database: Database,
  by: { token: string; nonceOf: NonceOf } | OwnLink,
): Promise<SetupVisit | null> {
  const link = await linkBy(database, 'token' in by ? by.token : by);
  const tenant = link === null ? null : await tenantOf(database, link.tenantId);
  if (link === null || tenant === null) return null;
  return visitOf(link, tenant, 'token' in by ? by.nonceOf(link.id) : by.nonce);
}

async function tenantOf(database: Database, tenantId: string): Promise<TenantOfLink | null> {
  const tenant = await findTenant(database, tenantId);
  return tenant === null ? null : { ...tenant, isSuspended: await isSuspended(database, tenantId) };
}

type Started = { id: string; nonce: string; expiresAt: Date; dialogUrl: string | null };

/** By its token, or in the browser that began with it: ids can be guessed. */
async function linkBy(database: Database, by: string | OwnLink): Promise<SetupLink | null> {
  if (typeof by !== 'string') {
    const link = await findSetupLink(database, { id: setupRowId(by.id) });
    return link !== null && isOwnLink(link, by.nonce) ? link : null;
  }
  const tokenHash = secretTokenHash(by);
  return tokenHash === null ? null : await findSetupLink(database, { tokenHash });
}

/** Begins, or begins again, in this browser. `dialogUrl`: null for a link with steps. Throws RequestError. */
async function start(
  tools: SetupTools,
  stateKey: () => Promise<Buffer>,
  by: string | OwnLink,
): Promise<Started> {
  const { database, upstream, publicUrl } = tools;
  const found = await linkBy(database, by);
  if (found === null) throw unknownLink();
  const key = await stateKey();
  const nonce = newSecretToken();
  return await database.transaction(async (trx) => {
    const link = await lockAllowed(trx, found.id, undefined);
    const { signup } = upstream;
    const isSignup = link.mode === 'signup';
    if (isSignup && signup === null) throw notConfigured();
    await saveSetupLink(trx, link.id, { state: 'started', nonceHash: nonceHash(nonce), failure: null });
    const dialog = {
      redirectUri: `${publicUrl}${SETUP_CALLBACK_PATH}`,
      state: dialogState(key, { id: link.id, nonce }),
      isCoexistence: !link.connections.includes('cloud'),
    };
    const address = isSignup && signup !== null ? dialogUrl(upstream, signup, dialog) : null;
    return { id: publicSetupId(link.id), nonce, expiresAt: link.expiresAt, dialogUrl: address };
  });
}

/** The locked link, which this browser may use. Throws RequestError: `unknown_setup_link` or as `SetupRefusal`. */
async function lockAllowed(trx: Transaction, id: string, nonce: string | undefined): Promise<SetupLink> {
  const link = await lockSetupLink(trx, id);
  const tenant = link === null ? null : await tenantOf(trx, link.tenantId);
  if (link === null || tenant === null) throw unknownLink();
  const refusal = refusalOf(link, tenant, isOwnLink(link, nonce));
  if (refusal !== null) throw refusedAs(refusal);
  return link;
}

function unknownLink(): RequestError {
  return new RequestError('unknown_setup_link', 'There is no such link.');
}

const REFUSALS = {
  link_expired: 'The link has expired.',
  link_revoked: 'The link is no longer valid.',
  link_used: 'The link is used in another browser.',
  tenant_suspended: 'The business is suspended.',
};

function refusedAs(refusal: keyof typeof REFUSALS): RequestError {
  return new RequestError(refusal, REFUSALS[refusal]);
}

/**
 * What upstream's dialog led back with. A code is exchanged at once, because it lives 30 seconds, and the token is stored before anything else.
 * `id` is null where nothing can be said of a link: the state is made up, old, or of another browser.
 */
async function finishDialog(
  tools: SetupTools,
  stateKey: () => Promise<Buffer>,
  answer: DialogAnswer,
  nonceOf: NonceOf,
): Promise<{ id: string | null }> {
  const own = linkOfState(await stateKey(), answer.state ?? '', nonceOf);
  const link = own === null ? null : await findSetupLink(tools.database, { id: own.id });
  if (own === null || link === null) return { id: null };
  const id = publicSetupId(own.id);
  const isAwaited = link.state === 'started' || link.failure?.code === 'code_lost';
  if (!isAwaited || !isOwnLink(link, own.nonce)) return { id };
  const change = await changeAfterDialog(tools, link, answer);
  await tools.database.transaction(async (trx) => {
    const locked = await lockSetupLink(trx, own.id);
    if (locked === null || !takes(locked, change) || !isOwnLink(locked, own.nonce)) return;
    await saveSetupLink(trx, own.id, change);
    if (change.state === 'authorized') await authorized(trx, locked);
    else {
      const action = change.state === 'failed' ? 'setup_link.failed' : 'setup_link.cancelled';
      await noteLink(trx, action, locked, change);
    }
  });
  return { id };
}

/** The answer may come twice at once: one of them is refused by upstream, and must not undo the other. A link that was ended meanwhile takes none. */
function takes({ state, authorizedAt }: SetupLink, change: SetupChange): boolean {
  return (
    state === 'started' || (state === 'failed' && authorizedAt === null && change.state === 'authorized')
  );
}

async function authorized(trx: Transaction, link: SetupLink): Promise<void> {
  await noteLink(trx, 'setup_link.authorized', link);
  await goOn(trx, link);
}

async function changeAfterDialog(
  tools: SetupTools,
  link: SetupLink,
  answer: DialogAnswer,
): Promise<SetupChange> {
  const { signup } = tools.upstream;
  const { code } = answer;
  if (code === undefined || code === '' || signup === null) return leftDialog(answer);
  try {
    const redirectUri = `${tools.publicUrl}${SETUP_CALLBACK_PATH}`;
    const token = await (await tools.client()).exchangeCode(signup, code, redirectUri);
    return authorizedBy(tools, link.id, checkAccessToken(token));
  } catch (error) {
    if (!(error instanceof GraphError)) throw error;
    if (isRefusal('code', error)) {
      const message = 'Upstream did not take the answer of its dialog any more. Begin again.';
      return failedLogin('code_expired', message);
    }
    return failedLogin('upstream_error', `Upstream refuses: ${error.message}`, error.code);
  }
}

function authorizedBy({ secretBox }: SetupTools, id: string, token: string): SetupChange {
  const tokenSealed = secretBox.seal(token, SETUP_TOKEN.place(id));
  return { state: 'authorized', failure: null, tokenSealed, authorizedAt: new Date() };
}

/** The customer left the dialog, or upstream ended it. */
function leftDialog({ error, error_code, current_step }: DialogAnswer): SetupChange {
  const step = current_step !== undefined && /^[A-Za-z_]{1,64}$/.test(current_step) ? current_step : null;
  if (step !== null) {
    const failure = loginFailure('flow_abandoned', `The dialog was left at ${step}.`, { step });
    return { state: 'cancelled', failure };
  }
  if (error === 'access_denied') {
    return { state: 'cancelled', failure: loginFailure('login_cancelled', 'The dialog was cancelled.', {}) };
  }
  const upstreamCode = /^\d{1,9}$/.test(error_code ?? '') ? Number(error_code) : null;
  return failedLogin('upstream_error', 'The dialog of upstream ended with an error.', upstreamCode);
}

function failedLogin(code: FailureCode, message: string, upstreamCode: number | null = null): SetupChange {
  return { state: 'failed', failure: loginFailure(code, message, { upstreamCode }) };
}

function loginFailure(code: FailureCode, message: string, more: Partial<SetupFailure>): SetupFailure {
  return { step: 'login', code, retryable: true, message, upstreamCode: null, retryAt: null, ...more };
}

/** Begins a link with steps: upstream shows the numbers of the WABA for the token, or refuses. Throws RequestError. */
async function giveToken(
  tools: SetupTools,
  own: OwnLink,
  given: { wabaId: string; accessToken: string },
): Promise<void> {
  const id = setupRowId(own.id);
  const wabaId = await checkingMember('wabaId', () => checkUpstreamId('The WABA id', given.wabaId.trim()));
  const token = await checkingMember('accessToken', () => checkAccessToken(given.accessToken));
  await changeOwn(tools.database, own, async () => ({}));
  try {
    await (await tools.client()).listPhoneNumbers(wabaId, token);
  } catch (error) {
    if (!(error instanceof GraphError)) throw error;
    throw invalidValue(`Upstream does not show the WABA for this token: ${error.message}`, 'accessToken');
  }
  await changeOwn(tools.database, own, async (trx, link) => {
    if (link.mode !== 'steps' || link.state !== 'started') throw notNow();
    await authorized(trx, link);
    return { ...authorizedBy(tools, id, token), wabaId };
  });
}

/** The customer's choice, one of what upstream named for the token. Throws RequestError. */
async function choose({ database }: SetupTools, own: OwnLink, chosen: string): Promise<void> {
  await changeOwn(database, own, async (trx, link) => {
    const { choice } = link;
    if (choice === null) throw notNow();
    if (!choice.options.some(({ id }) => id === chosen)) throw invalidValue('Choose one of the list.', 'id');
    await goOn(trx, link);
    return { choice: null, ...(choice.of === 'waba' ? { wabaId: chosen } : { phoneNumberId: chosen }) };
  });
}

/** The PIN of a number on which two-step verification is on. Throws RequestError. */
async function givePin(tools: SetupTools, own: OwnLink, pin: string): Promise<void> {
  if (!/^\d{6}$/.test(pin)) throw invalidValue('The PIN has six digits.', 'pin');
  await changeOwn(tools.database, own, async (trx, link) => {
    const { failure, phoneNumberId, pinTries } = link;
    const isAsked = failure?.code === 'pin_required' && pinTries < MOST_PINS;
    if (link.state !== 'failed' || !isAsked || phoneNumberId === null) throw notNow();
    await saveNumberPin({ ...tools, database: trx }, phoneNumberId, pin);
    await goOn(trx, link);
    return { ...resumed(link), pinTries: pinTries + 1 };
  });
}

const STATE_BEFORE = { subscribe: 'authorized', register: 'subscribed' } as const;

/** Tries the failed step again, or from an earlier one: each asks upstream first whether it is done. Throws RequestError. */
async function retry(
  { database }: SetupTools,
  own: OwnLink,
  from?: keyof typeof STATE_BEFORE,
): Promise<void> {
  await changeOwn(database, own, async (trx, link) => {
    const { state, failure } = link;
    const mayRetry = state === 'failed' && failure?.retryable === true && failure.code !== 'pin_required';
    if (link.authorizedAt === null || !mayRetry) throw notNow();
    if (isTooEarly(link)) throw invalidValue(`Upstream refuses this until ${failure.retryAt}.`);
    await goOn(trx, link);
    const back = from === undefined ? null : STATE_BEFORE[from];
    return { ...resumed(link), ...(back !== null && isBefore(back, link.resumes) && { state: back }) };
  });
}

const ORDER: readonly (SetupState | null)[] = ['authorized', 'subscribed', 'registered'];

function isBefore(state: SetupState, other: SetupState | null): boolean {
  return ORDER.indexOf(state) < ORDER.indexOf(other);
}

function resumed({ resumes }: SetupLink): SetupChange {
  return { state: resumes ?? 'authorized', resumes: null, failure: null, tries: 0 };
}

function notNow(): RequestError {
  return new RequestError('setup_link_elsewhere', 'The link has gone on meanwhile. Look at it again.');
}

/** Changes a link under its lock. Throws RequestError where this is not the browser that began, or the link is over. */
async function changeOwn(
  database: Database,
  { id: publicId, nonce }: OwnLink,
  change: (trx: Transaction, link: SetupLink) => Promise<SetupChange>,
): Promise<void> {
  const id = setupRowId(publicId);
  await database.transaction(async (trx) => {
    const link = await lockAllowed(trx, id, nonce);
    if (!isOwnLink(link, nonce)) throw refusedAs('link_used');
    const changed = await change(trx, link);
    if (Object.keys(changed).length > 0) await saveSetupLink(trx, id, changed);
  });
}
