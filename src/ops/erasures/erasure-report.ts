import { createPrivateKey, createPublicKey, hkdfSync, type KeyObject, sign, verify } from 'node:crypto';
import type { EncryptionKey } from '../../platform/crypto/secret-box.ts';
import type { ErasureCounts } from '../../platform/erasing.ts';
import { invalidValue } from '../../platform/request-input.ts';

/** It names ids of ours only. */
export type ErasureReport = {
  version: 1;
  erasureId: string;
  kind: string;
  subjectId: string;
  wabaId: string | null;
  tenantId: string | null;
  requestedBy: string;
  requestedAt: string;
  startedAt: string;
  finishedAt: string;
  counts: ErasureCounts;
  /** What other systems did not let go, such as `fileVersions` in the object store. */
  refused: ErasureCounts;
};

/** `keyId`: the encryption key that the signing key follows from. */
export type ReportSignature = {
  algorithm: 'ed25519';
  keyId: string;
  /** Base64 of the 32 bytes, as in an SPKI document's end. */
  publicKey: string;
  value: string;
};

export type SignedReport = { report: ErasureReport; signature: ReportSignature };

/** PKCS #8 of an ed25519 key, up to its 32 bytes. */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');
const SPKI = Buffer.from('302a300506032b6570032100', 'hex');
const SEED_BYTES = 32;
const PURPOSE = 'heliograph erasure report v1';

function signingKey({ key }: EncryptionKey): KeyObject {
  const seed = Buffer.from(hkdfSync('sha256', key, '', PURPOSE, SEED_BYTES));
  return createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: 'der', type: 'pkcs8' });
}

function publicKeyOf(key: KeyObject): string {
  const der = createPublicKey(key).export({ format: 'der', type: 'spki' });
  return der.subarray(SPKI.length).toString('base64');
}

/** JSON without spaces, members in the order of their names (`jq -cSj .report` prints the same). */
export function reportText(report: ErasureReport): string {
  return JSON.stringify(sorted(report));
}

function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(sorted);
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, member]) => [name, sorted(member)]));
}

export function signReport(text: string, [current]: readonly EncryptionKey[]): ReportSignature {
  if (current === undefined) throw new Error('there is no encryption key');
  const key = signingKey(current);
  const value = sign(null, Buffer.from(text), key).toString('base64');
  return { algorithm: 'ed25519', keyId: current.id, publicKey: publicKeyOf(key), value };
}

/**
 * `valid`: this installation signed it as it is. `foreign`: it is as its public key signed it, but that is not a key of
 * the present settings. `invalid`: it was changed.
 */
export type ReportVerdict = 'valid' | 'foreign' | 'invalid';

/** Throws RequestError `invalid_value` for what is no report. */
export function verifyReport(document: unknown, keys: readonly EncryptionKey[]): ReportVerdict {
  const { report, signature } = readDocument(document);
  const raw = Buffer.from(signature.publicKey, 'base64');
  if (raw.length !== SEED_BYTES) return 'invalid';
  const key = createPublicKey({ key: Buffer.concat([SPKI, raw]), format: 'der', type: 'spki' });
  const text = Buffer.from(reportText(report));
  if (!verify(null, text, key, Buffer.from(signature.value, 'base64'))) return 'invalid';
  return keys.some((one) => publicKeyOf(signingKey(one)) === signature.publicKey) ? 'valid' : 'foreign';
}

function readDocument(document: unknown): SignedReport {
  const { report, signature } = (document ?? {}) as Partial<SignedReport>;
  const isReport = typeof report === 'object' && report !== null && report.version === 1;
  const isSigned = typeof signature?.publicKey === 'string' && typeof signature.value === 'string';
  if (!isReport || !isSigned)
    throw invalidValue('This is no report of an erasure: {"report": …, "signature": …}.');
  return { report, signature };
}
