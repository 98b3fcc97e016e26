import { randomBytes, randomInt } from 'node:crypto';
import type { PhoneDirectory, PhoneNumber } from './demo-accounts.ts';

/** What can become of the dialog of Embedded Signup; the text is for the developer who plays the customer. */
export const SIGNUP_OUTCOMES = {
  finish: 'Finish: a WABA with a new number',
  in_review: 'Finish: the display name of the number is in review',
  pin_set: 'Finish: the number has a PIN of two-step verification (482913)',
  two_wabas: 'Finish: two WABAs, a number in each',
  only_waba: 'Finish: a WABA without a number',
  coexistence: 'Finish: a number that stays in the WhatsApp Business app',
  no_permission: 'Finish, but without the permission to send messages',
  no_waba: 'Finish, but without a WABA',
  cancel: 'Cancel at the sign-in',
  cancel_at_step: 'Cancel at the step of the phone number',
  error: 'An error of upstream',
} as const;

export type SignupOutcome = keyof typeof SIGNUP_OUTCOMES;

/** Of the number of `pin_set`. */
export const SET_PIN = '482913';

const CODE_LIFETIME_MS = 30_000;
const MANAGING = 'whatsapp_business_management';
const MESSAGING = 'whatsapp_business_messaging';

/** What a token was granted. */
type Grant = { scopes: readonly string[]; wabaIds: readonly string[]; grantedAtMs: number };

type IssuedCode = { grant: Grant; redirectUri: string; used: boolean };

/** Codes and tokens of the dialog, and the accounts that customers made in it. */
export type SignupRegister = {
  /** Makes the accounts; of a WABA that is known already, the token is for that one. */
  finish: (
    outcome: SignupOutcome,
    options: { redirectUri: string; wabaId?: string | undefined },
  ) => { code: string; wabaIds: readonly string[] };
  /** The token of a code, once. */
  exchange: (
    code: string,
    redirectUri: string,
  ) => { token: string } | { refused: 'unknown' | 'used' | 'expired' | 'address' };
  grantOf: (token: string) => Grant | undefined;
};

function digits(prefix: string, count: number): string {
  return `${prefix}${String(randomInt(10 ** count)).padStart(count, '0')}`;
}

function newNumber(wabaId: string, outcome: SignupOutcome): PhoneNumber {
  const line = digits('', 4);
  const isOnBizApp = outcome === 'coexistence';
  return {
    wabaId,
    phoneNumberId: digits('82', 13),
    displayPhoneNumber: `+1 202-555-${line}`,
    verifiedName: `New Store ${line}`,
    status: isOnBizApp ? 'CONNECTED' : 'PENDING',
    nameStatus: outcome === 'in_review' ? 'PENDING_REVIEW' : 'APPROVED',
    isPinEnabled: outcome === 'pin_set',
    ...(isOnBizApp && { isOnBizApp }),
    ...(outcome === 'pin_set' && { pin: SET_PIN }),
  };
}

/** Creates a register whose accounts are added to `phones`. */
export function createSignupRegister(phones: PhoneDirectory, now: () => number): SignupRegister {
  const codes = new Map<string, IssuedCode>();
  const grants = new Map<string, Grant>();
  const makeWaba = (outcome: SignupOutcome) => {
    const wabaId = digits('92', 13);
    phones.addWaba(wabaId, now());
    if (outcome !== 'only_waba') phones.add(newNumber(wabaId, outcome));
    return wabaId;
  };
  return {
    finish: (outcome, { redirectUri, wabaId }) => {
      const count = outcome === 'no_waba' ? 0 : outcome === 'two_wabas' ? 2 : 1;
      const wabaIds =
        wabaId !== undefined ? [wabaId] : Array.from({ length: count }, () => makeWaba(outcome));
      const scopes = outcome === 'no_permission' ? [MANAGING] : [MANAGING, MESSAGING];
      const code = `AQ${randomBytes(72).toString('base64url')}`;
      codes.set(code, { grant: { scopes, wabaIds, grantedAtMs: now() }, redirectUri, used: false });
      return { code, wabaIds };
    },
    exchange: (code, redirectUri) => {
      const issued = codes.get(code);
      if (issued === undefined) return { refused: 'unknown' };
      if (issued.used) return { refused: 'used' };
      if (now() - issued.grant.grantedAtMs > CODE_LIFETIME_MS) return { refused: 'expired' };
      if (issued.redirectUri !== redirectUri) return { refused: 'address' };
      issued.used = true;
      const token = `EAA${randomBytes(96).toString('base64url')}`;
      grants.set(token, issued.grant);
      return { token };
    },
    grantOf: (token) => grants.get(token),
  };
}
