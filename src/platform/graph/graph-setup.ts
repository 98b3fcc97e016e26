import { listOf, membersOf, textOf } from '../json/json-members.ts';
import { type GraphConnection, graphGet, graphPost } from './graph-connection.ts';
import { noAnswer } from './graph-error.ts';

/** The calls by which a number is set up. Each throws GraphError. */

/** The app whose dialog customers use: its id, the configuration of its dialog, and its secret. */
export type SignupApp = { appId: string; configId: string; appSecret: string };

/** The version of the dialog; earlier ones end in 2026. */
const DIALOG_VERSION = 'v4';
const COEXISTENCE = 'whatsapp_business_app_onboarding';

/**
 * The address of upstream's dialog, in the form that leads back by a redirect: no script of upstream runs on a page of ours. Pages are at `www.`
 * where calls are at `graph.`.
 */
export function dialogUrl(
  { graphUrl, graphVersion }: { graphUrl: string; graphVersion: string },
  { appId, configId }: Pick<SignupApp, 'appId' | 'configId'>,
  { redirectUri, state, isCoexistence }: { redirectUri: string; state: string; isCoexistence: boolean },
): string {
  const url = new URL(`${graphUrl}/${graphVersion}/dialog/oauth`);
  url.hostname = url.hostname.replace(/^graph\./, 'www.');
  const extras = { version: DIALOG_VERSION, ...(isCoexistence && { featureType: COEXISTENCE }) };
  url.search = new URLSearchParams({
    client_id: appId,
    config_id: configId,
    response_type: 'code',
    override_default_response_type: 'true',
    redirect_uri: redirectUri,
    state,
    extras: JSON.stringify(extras),
  }).toString();
  return url.href;
}

/** Exchanges what the dialog brought, within its 30 seconds: `GET /oauth/access_token`. */
export async function exchangeCode(
  connection: GraphConnection,
  { appId, appSecret }: SignupApp,
  { code, redirectUri, timeoutMs }: { code: string; redirectUri: string; timeoutMs: number },
): Promise<string> {
  const { access_token: token } = await graphGet(connection, {
    path: ['oauth', 'access_token'],
    query: { client_id: appId, client_secret: appSecret, redirect_uri: redirectUri, code },
    token: null,
    timeoutMs,
  });
  if (typeof token !== 'string' || token === '') throw noAnswer('its answer has no access token');
  return token;
}

/** What an access token may do. */
export type TokenRights = {
  /** It is valid, and of the app that asks. */
  isOurs: boolean;
  scopes: string[];
  /** The WABAs that the customer chose, the newest first; empty: upstream names none. */
  wabaIds: string[];
};

const MAX_NAME_CHARS = 200;
const MANAGEMENT = 'whatsapp_business_management';

/** What upstream says of a token: `GET /debug_token`, with the app's own token. */
export async function readTokenRights(
  connection: GraphConnection,
  { appId, appSecret }: SignupApp,
  token: string,
): Promise<TokenRights> {
  const answer = await graphGet(connection, {
    path: ['debug_token'],
    query: { input_token: token },
    token: `${appId}|${appSecret}`,
  });
  const data = membersOf(answer.data);
  const granular = listOf(data.granular_scopes);
  const targets = granular.find(({ scope }) => scope === MANAGEMENT)?.target_ids;
  return {
    isOurs: data.is_valid === true && textOf(data.app_id) === appId,
    scopes: [
      ...(Array.isArray(data.scopes) ? data.scopes.map(textOf) : []),
      ...granular.map(({ scope }) => textOf(scope)),
    ],
    wabaIds: Array.isArray(targets)
      ? [...new Set(targets.map(textOf))].filter((id) => /^\d{1,64}$/.test(id))
      : [],
  };
}

/** `GET /{waba}`; empty where it has none. */
export async function readWabaName(
  connection: GraphConnection,
  wabaId: string,
  token: string,
): Promise<string> {
  const { name } = await graphGet(connection, { path: [wabaId], query: { fields: 'id,name' }, token });
  return textOf(name).slice(0, MAX_NAME_CHARS);
}

/** Has the webhooks of a WABA sent to the app of the token; with an override to this address: `POST /{waba}/subscribed_apps`. */
export async function subscribeApp(
  connection: GraphConnection,
  wabaId: string,
  token: string,
  override: { callbackUrl: string; verifyToken: string } | null,
): Promise<void> {
  const path = [wabaId, 'subscribed_apps'];
  const body =
    override === null
      ? {}
      : { override_callback_uri: override.callbackUrl, verify_token: override.verifyToken };
  requireSuccess(await graphPost(connection, { path, token, body }));
}

/** How far a number is. */
export type NumberSetup = {
  isRegistered: boolean;
  /** Used in the WhatsApp Business app too. */
  isInApp: boolean;
  /** Upstream has not approved its name yet. */
  isInReview: boolean;
};

/** `GET /{phone number id}`. */
export async function readNumberSetup(
  connection: GraphConnection,
  phoneNumberId: string,
  token: string,
): Promise<NumberSetup> {
  const fields = 'id,status,platform_type,is_on_biz_app,name_status';
  const number = await graphGet(connection, { path: [phoneNumberId], query: { fields }, token });
  return {
    isRegistered: number.platform_type === 'CLOUD_API' && number.status === 'CONNECTED',
    isInApp: number.is_on_biz_app === true,
    isInReview: number.name_status === 'PENDING_REVIEW',
  };
}

/** `POST /{phone number id}/register`. */
export async function registerNumber(
  connection: GraphConnection,
  phoneNumberId: string,
  token: string,
  pin: string,
): Promise<void> {
  const path = [phoneNumberId, 'register'];
  requireSuccess(await graphPost(connection, { path, token, body: { messaging_product: 'whatsapp', pin } }));
}

/** What upstream copies of the WhatsApp Business app, each once within a day of the connection. */
export const APP_SYNCS = ['smb_app_state_sync', 'history'] as const;
export type AppSync = (typeof APP_SYNCS)[number];

/** `POST /{phone number id}/smb_app_data`. */
export async function syncBusinessApp(
  connection: GraphConnection,
  phoneNumberId: string,
  token: string,
  sync: AppSync,
): Promise<void> {
  const path = [phoneNumberId, 'smb_app_data'];
  await graphPost(connection, { path, token, body: { messaging_product: 'whatsapp', sync_type: sync } });
}

function requireSuccess({ success }: Record<string, unknown>): void {
  if (success !== true) throw noAnswer('its answer does not say success');
}

const REFUSALS = {
  /** An authorization code that is too old, or was used. */
  code: { codes: [] as number[], subcodes: [36007, 36009] },
  /** Two-step verification is on with another PIN. */
  pin: { codes: [133005], subcodes: [] as number[] },
  /** Too many registrations within 72 hours, or too many wrong PINs. */
  registrationRate: { codes: [133008, 133009, 133016], subcodes: [] as number[] },
  /** A copy of the WhatsApp Business app that was asked for already, or a day too late. */
  syncRepeated: { codes: [2_593_107], subcodes: [] as number[] },
  syncLate: { codes: [2_593_108], subcodes: [] as number[] },
};

/** What upstream means by refusing a call of the set-up. */
export function isRefusal(
  kind: keyof typeof REFUSALS,
  { code, subcode }: { code: number | null; subcode: number | null },
): boolean {
  const { codes, subcodes } = REFUSALS[kind];
  return codes.includes(code ?? Number.NaN) || subcodes.includes(subcode ?? Number.NaN);
}
