import type { FailureCode } from '../../features/setup-links/setup-link-store.ts';
import type { SetupRefusal } from '../../features/setup-links/setup-visit.ts';

/** What the customer can do about a failure. */
export const ADVICE: Readonly<Record<FailureCode, string>> = {
  login_cancelled: 'Start again when you are ready. Nothing was connected.',
  flow_abandoned: 'Start again. Meta may ask for some of your entries a second time.',
  upstream_error: 'Wait a few minutes and try again. If it happens again, report the code to the support.',
  code_expired: 'Start again, and do not close the window between Meta and this page.',
  code_lost:
    'Start again, and choose the same account: Meta remembers what you entered. Wait at the end until you are back on this page.',
  permission_missing: 'Start again, and leave all permissions on when Meta asks for them.',
  no_waba: 'Start again, and choose or create a WhatsApp Business Account when Meta asks for it.',
  no_number:
    'Add a phone number to the account in WhatsApp Manager, then try again. The choice “display name only” gives no number that can send messages.',
  waba_taken:
    'The account belongs to another customer of this service. Start again with another account, or ask the support.',
  number_taken:
    'The number belongs to another customer of this service. Start again with another number, or ask the support.',
  subscription_failed: 'Try again. You do not have to sign in at Meta again.',
  pin_required:
    'Enter the PIN of the two-step verification. You can change it or switch it off in WhatsApp Manager, under the settings of the number.',
  registration_refused:
    'Open the number in WhatsApp Manager and check that it is verified and not used in the WhatsApp app. Then try again.',
  registration_rate_limited:
    'Meta limits how often a number is registered: 10 times in 72 hours. Wait, then try again.',
  coexistence_sync_late:
    'In the WhatsApp Business app, disconnect the number under Settings, Business Platform. Then start again.',
};

/** Why this browser can do nothing with the link. */
export const REFUSALS: Readonly<Record<SetupRefusal, { title: string; text: string }>> = {
  link_expired: {
    title: 'This link has expired',
    text: 'Links are valid for a limited time. Ask for a new one where you got this one.',
  },
  link_revoked: {
    title: 'This link was revoked',
    text: 'Ask for a new one where you got this one.',
  },
  link_used: {
    title: 'This link was used in another browser',
    text: 'The number is being connected there, or it is connected already. Continue in that browser.',
  },
  tenant_suspended: {
    title: 'The account is suspended',
    text: 'No number can be connected at the moment. Ask the support of the service that gave you this link.',
  },
};

/** For a link that does not exist, a mistyped one, and a return from Meta that belongs to no link of this browser. */
export const UNKNOWN_LINK = {
  title: 'This link is not known',
  text: 'The address may be incomplete. Open the link again from where you got it, in the browser in which you began.',
};

/** Customers know the platform by the name of its company; texts of the API and of checks call it upstream. */
export function inPublicWords(text: string): string {
  return text.replaceAll(/\bupstream\b/gi, 'Meta');
}
