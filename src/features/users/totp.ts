import { createHash, randomBytes } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';

/** As every authenticator app takes it: RFC 6238 with the values of its reference. */
const OPTIONS = { issuer: 'Heliograph', algorithm: 'SHA1', digits: 6, period: 30 } as const;
const SECRET_BYTES = 20;

/** Codes of the step before and of the step after count too: clocks differ, and typing takes time. */
const WINDOW_STEPS = 1;

const CODE = /^\d{6}$/;

const RECOVERY_CODES = 10;
const RECOVERY_CODE_BYTES = 10;
const RECOVERY_CODE = /^[A-Z2-7]{16}$/;

/** A new secret, in base32. */
export function newTotpSecret(): string {
  return new Secret({ size: SECRET_BYTES }).base32;
}

export function totpUri(secret: string, email: string): string {
  return new TOTP({ ...OPTIONS, label: email, secret: Secret.fromBase32(secret) }).toString();
}

/** The time step that a code is of; null when it is of none that counts now. */
export function totpStep(secret: string, code: string, nowMs: number): number | null {
  const token = code.replaceAll(/\s/g, '');
  if (!CODE.test(token)) return null;
  const totp = new TOTP({ ...OPTIONS, secret: Secret.fromBase32(secret) });
  const delta = totp.validate({ token, timestamp: nowMs, window: WINDOW_STEPS });
  return delta === null ? null : totp.counter({ timestamp: nowMs }) + delta;
}

/** Codes for when the device is lost, in groups of four. Each has 80 bits, so a plain hash keeps it. */
export function newRecoveryCodes(): string[] {
  return Array.from({ length: RECOVERY_CODES }, () => {
    const { base32 } = new Secret({ buffer: new Uint8Array(randomBytes(RECOVERY_CODE_BYTES)).buffer });
    return (base32.match(/.{4}/g) ?? []).join('-');
  });
}

/** The hash that a recovery code is stored by, however it was typed; null for a text that can be none. */
export function recoveryCodeHash(text: string): Buffer | null {
  const code = text.replaceAll(/[\s-]/g, '').toUpperCase();
  return RECOVERY_CODE.test(code) ? createHash('sha256').update(code).digest() : null;
}
