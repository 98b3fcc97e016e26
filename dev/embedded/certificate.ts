import { X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CertificateField, generate } from 'selfsigned';
import { writePrivateFile } from './kept-files.ts';

export interface LocalCertificate {
  readonly caPath: string;
  readonly certPath: string;
  readonly keyPath: string;
}

const DAY_MS = 86_400_000;
const VALID_DAYS = 730;
const RENEW_BEFORE_DAYS = 30;

/**
 * The certificate for https on this machine (localhost, 127.0.0.1, ::1), with a certificate authority of
 * its own for clients to trust. Kept in `directory`, renewed 30 days before it ends.
 */
export async function ensureCertificate(directory: string, now = new Date()): Promise<LocalCertificate> {
  const paths = {
    caPath: join(directory, 'ca.pem'),
    certPath: join(directory, 'cert.pem'),
    keyPath: join(directory, 'key.pem'),
  };
  if (!isUsable(paths, now)) await makeCertificate(directory, paths, now);
  return paths;
}

function isUsable({ caPath, certPath, keyPath }: LocalCertificate, now: Date): boolean {
  if (![caPath, certPath, keyPath].every((path) => existsSync(path))) return false;
  try {
    const ca = new X509Certificate(readFileSync(caPath));
    const leaf = new X509Certificate(readFileSync(certPath));
    const renewAt = leaf.validToDate.getTime() - RENEW_BEFORE_DAYS * DAY_MS;
    return leaf.checkIssued(ca) && leaf.verify(ca.publicKey) && now.getTime() < renewAt;
  } catch {
    return false;
  }
}

/** The authority's key is thrown away, so that no other certificate of it can be made. */
async function makeCertificate(directory: string, paths: LocalCertificate, now: Date): Promise<void> {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const common = {
    keyType: 'ec',
    algorithm: 'sha256',
    // A clock that is a little behind must not refuse the certificate.
    notBeforeDate: new Date(now.getTime() - DAY_MS),
    notAfterDate: new Date(now.getTime() + VALID_DAYS * DAY_MS),
  } as const;
  const authority = await generate(subject(`Heliograph local authority ${now.toISOString()}`), {
    ...common,
    extensions: [
      { name: 'basicConstraints', cA: true, pathLenConstraint: 0, critical: true },
      { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  const leaf = await generate(subject('localhost'), {
    ...common,
    ca: { key: authority.private, cert: authority.cert },
    extensions: [
      { name: 'basicConstraints', cA: false, critical: true },
      { name: 'keyUsage', digitalSignature: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true },
      {
        name: 'subjectAltName',
        altNames: [
          { type: 2, value: 'localhost' },
          { type: 7, ip: '127.0.0.1' },
          { type: 7, ip: '::1' },
        ],
      },
    ],
  });
  writePrivateFile(paths.keyPath, leaf.private);
  writePrivateFile(paths.certPath, leaf.cert);
  writePrivateFile(paths.caPath, authority.cert);
}

function subject(commonName: string): CertificateField[] {
  return [
    { name: 'commonName', value: commonName },
    { name: 'organizationName', value: 'Heliograph' },
  ];
}
