import { randomBytes } from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  descriptionFile,
  type EmbeddedDescription,
  type EmbeddedPortalUser,
  type EmbeddedTenant,
  readJsonFile,
} from '../../src/platform/local-stack/embedded-description.ts';

/** Replaces the file as a whole, mode 0600. */
export function writeDescription(dataDir: string, description: EmbeddedDescription): void {
  writePrivateFile(descriptionFile(dataDir), `${JSON.stringify(description, null, 2)}\n`);
}

/** At start, so that the file of an earlier run does not look like a stack that is ready. */
export function removeDescription(dataDir: string): void {
  rmSync(descriptionFile(dataDir), { force: true });
}

/** Keeps the demonstration tenants: their API keys can be had nowhere else once they are made. */
export function keepTenants(dataDir: string, tenants: readonly EmbeddedTenant[]): void {
  writePrivateFile(tenantsFile(dataDir), `${JSON.stringify(tenants, null, 2)}\n`);
}

export function readKeptTenants(dataDir: string): EmbeddedTenant[] {
  const tenants = readJsonFile(tenantsFile(dataDir));
  return Array.isArray(tenants) ? tenants.filter(isTenant) : [];
}

function tenantsFile(dataDir: string): string {
  return join(dataDir, 'demo-tenants.json');
}

function isTenant(value: unknown): value is EmbeddedTenant {
  if (typeof value !== 'object' || value === null) return false;
  const tenant = value as Record<string, unknown>;
  const texts = ['businessName', 'wabaId', 'apiKey', 'endpointId', 'webhookSecret'];
  return (
    typeof tenant.userId === 'number' &&
    Array.isArray(tenant.phoneNumberIds) &&
    texts.every((name) => typeof tenant[name] === 'string')
  );
}

const PASSWORD_BYTES = 12;

/** An operator, and an administrator of the first tenant; their passwords are made once and kept with the data. */
export function embeddedPortalUsers(dataDir: string): EmbeddedPortalUser[] {
  const password = (role: string) => keptSecret(join(dataDir, `portal-password-${role}`), PASSWORD_BYTES);
  return [
    {
      email: 'operator@heliograph.example',
      name: 'Operator',
      role: 'operator',
      password: password('operator'),
    },
    { email: 'admin@store.example', name: 'Store admin', role: 'admin', password: password('admin') },
  ];
}

/** Replaces a file as a whole (mode 0600): a reader sees the old content or the new, never a part. */
export function writePrivateFile(path: string, content: string): void {
  const temporary = writeTemporary(path, content);
  renameSync(temporary, path);
}

/** Makes a file (mode 0600) with its full content; false when it exists already. */
export function createPrivateFile(path: string, content: string): boolean {
  const temporary = writeTemporary(path, content);
  try {
    linkSync(temporary, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** A secret (base64url) that is made at the first call and kept in its own file (mode 0600). */
export function keptSecret(path: string, sizeBytes: number): string {
  createPrivateFile(path, randomBytes(sizeBytes).toString('base64url'));
  return readFileSync(path, 'utf8').trim();
}

function writeTemporary(path: string, content: string): string {
  mkdirSync(dirname(path), { recursive: true });
  const temporary = `${path}.${process.pid}.${randomBytes(4).toString('hex')}.tmp`;
  writeFileSync(temporary, content, { mode: 0o600 });
  return temporary;
}
