import type { PhoneDirectory, PhoneNumber } from './demo-accounts.ts';

const MAX_REGISTRATIONS = 10;
const REGISTRATIONS_PERIOD_MS = 72 * 3_600_000;
const SYNC_PERIOD_MS = 24 * 3_600_000;

/** Which data of the WhatsApp Business app upstream passes on. */
export const SYNC_TYPES = ['smb_app_state_sync', 'history'] as const;

type SyncType = (typeof SYNC_TYPES)[number];

/** Which WABAs send to the app, and what was done to make numbers usable. */
export type RegistrationRegister = {
  /** Null: the app gets nothing of the WABA. */
  subscriptionOf: (wabaId: string) => { overrideCallbackUrl: string | null } | null;
  /** False: of a WABA that the app is not subscribed to, the address cannot be another. */
  subscribe: (wabaId: string, overrideCallbackUrl: string | null) => boolean;
  unsubscribe: (wabaId: string) => void;
  /** Sets the PIN of a number that has none. */
  register: (phone: PhoneNumber, pin: string) => 'registered' | 'wrong_pin' | 'too_often';
  /** Each type once, within a day after the number was connected. */
  sync: (phone: PhoneNumber, type: SyncType) => 'asked' | 'twice' | 'too_late';
};

/** Creates a register: the app is subscribed to the WABAs that were not made in the dialog. */
export function createRegistrationRegister(phones: PhoneDirectory, now: () => number): RegistrationRegister {
  const subscriptions = new Map<string, { overrideCallbackUrl: string | null } | null>();
  const attempts = new Map<string, number[]>();
  const synced = new Set<string>();
  const subscriptionOf = (wabaId: string) => {
    const known = subscriptions.get(wabaId);
    if (known !== undefined) return known;
    return phones.wabaMadeAt(wabaId) === undefined ? { overrideCallbackUrl: null } : null;
  };
  return {
    subscriptionOf,
    subscribe: (wabaId, overrideCallbackUrl) => {
      if (overrideCallbackUrl !== null && subscriptionOf(wabaId) === null) return false;
      subscriptions.set(wabaId, { overrideCallbackUrl });
      return true;
    },
    unsubscribe: (wabaId) => {
      subscriptions.set(wabaId, null);
    },
    register: (phone, pin) => {
      const earlier = attempts.get(phone.phoneNumberId) ?? [];
      const recent = earlier.filter((at) => now() - at < REGISTRATIONS_PERIOD_MS);
      if (recent.length >= MAX_REGISTRATIONS) return 'too_often';
      attempts.set(phone.phoneNumberId, [...recent, now()]);
      if (phone.pin !== undefined && phone.pin !== pin) return 'wrong_pin';
      phones.add({ ...phone, pin, isPinEnabled: true, status: 'CONNECTED' });
      return 'registered';
    },
    sync: ({ wabaId, phoneNumberId }, type) => {
      const entry = `${phoneNumberId} ${type}`;
      if (synced.has(entry)) return 'twice';
      if (now() - (phones.wabaMadeAt(wabaId) ?? now()) > SYNC_PERIOD_MS) return 'too_late';
      synced.add(entry);
      return 'asked';
    },
  };
}
