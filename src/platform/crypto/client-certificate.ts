import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { invalidValue } from '../request-input.ts';

/** Of a certificate what may be shown: all but its key. */
export type CertificateView = {
  subject: string;
  issuer: string;
  /** SHA-256, as OpenSSL writes it. */
  fingerprint: string;
  expiresAt: Date;
};

type CheckedCertificate = CertificateView & { pem: string; privateKey: string };

const MAX_CHARS = 32_768;
const MAX_CERTIFICATES = 10;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

export function certificateView(pem: string): CertificateView {
  const { subject, issuer, fingerprint256, validToDate } = new X509Certificate(pem);
  return {
    subject: nameText(subject),
    issuer: nameText(issuer),
    fingerprint: fingerprint256,
    expiresAt: validToDate,
  };
}

/**
 * Reads a chain in PEM, the own certificate first, and its private key without a passphrase.
 * Throws RequestError `invalid_value`, which never says what the key is.
 */
export function checkClientCertificate(
  { certificate, privateKey }: { certificate: string; privateKey: string },
  now: Date,
): CheckedCertificate {
  if (certificate.length > MAX_CHARS || privateKey.length > MAX_CHARS) {
    throw invalidValue(`Certificate and key may have ${MAX_CHARS.toLocaleString('en-US')} characters each.`);
  }
  const chain = readChain(certificate);
  const [own] = chain;
  if (own === undefined) throw invalidValue('This is no certificate in PEM.', 'certificate');
  const key = readKey(privateKey);
  if (!own.checkPrivateKey(key)) {
    throw invalidValue('The private key is not that of the first certificate.', 'privateKey');
  }
  if (own.validFromDate > now || own.validToDate <= now) {
    const [from, to] = [own.validFromDate, own.validToDate].map((date) => date.toISOString().slice(0, 10));
    throw invalidValue(`The certificate is valid from ${from} to ${to} only.`, 'certificate');
  }
  const pem = chain.map((one) => one.toString()).join('');
  const keyPem = key.export({ type: 'pkcs8', format: 'pem' }).toString();
  try {
    createSecureContext({ cert: pem, key: keyPem });
  } catch {
    throw invalidValue('TLS does not take this certificate: is its key too short?', 'certificate');
  }
  return { ...certificateView(pem), pem, privateKey: keyPem };
}

function readChain(text: string): X509Certificate[] {
  const blocks = text.match(CERTIFICATE) ?? [];
  if (blocks.length > MAX_CERTIFICATES) {
    throw invalidValue(`A chain has at most ${MAX_CERTIFICATES} certificates.`, 'certificate');
  }
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch {
    throw invalidValue('This is no certificate in PEM.', 'certificate');
  }
}

function readKey(text: string): KeyObject {
  if (text.includes('ENCRYPTED')) {
    throw invalidValue('The private key has a passphrase: remove it first (openssl pkey).', 'privateKey');
  }
  try {
    return createPrivateKey(text);
  } catch {
    throw invalidValue('This is no private key in PEM.', 'privateKey');
  }
}

/** OpenSSL has a line for each part of a name. */
function nameText(name: string | undefined): string {
  return (name ?? '').split('\n').join(', ');
}
