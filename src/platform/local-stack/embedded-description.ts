import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { EmbeddedPortalUser } from './portal-users.ts';
import { readJsonFile, writePrivateFile } from './private-file.ts';

/** A demonstration tenant, as scripts and black-box tests need it. */
export interface EmbeddedTenant {
  readonly userId: number;
  readonly businessName: string;
  readonly wabaId: string;
  readonly phoneNumberIds: readonly string[];
  readonly apiKey: string;
  readonly endpointId: string;
  readonly webhookSecret: string;
}

/** `.data/embedded.json`: the contract for scripts and black-box tests. */
export interface EmbeddedDescription {
  readonly apiUrl: string;
  readonly publicUrl: string;
  /** PEM file of the authority that signed the certificate of publicUrl. */
  readonly caPath: string;
  /** Without path. */
  readonly ingressUrl: string;
  readonly temporalAddress: string;
  readonly temporalUiUrl: string;
  readonly postgresUrl: string;
  readonly minioUrl: string;
  readonly sandboxUrl: string;
  readonly receiverUrl: string;
  readonly upstream: { readonly appSecret: string; readonly verifyToken: string };
  readonly tenants: readonly EmbeddedTenant[];
  readonly portalUrl: string;
  readonly portalUsers: readonly EmbeddedPortalUser[];
  /** Process numbers by part; empty when the stack does not run. */
  readonly pids: Readonly<Record<string, number>>;
}

/** Replaces the file as a whole, mode 0600. */
export function writeDescription(dataDir: string, description: EmbeddedDescription): void {
  writePrivateFile(descriptionFile(dataDir), `${JSON.stringify(description, null, 2)}\n`);
}

/** At start, so that the file of an earlier run does not look like a stack that is ready. */
export function removeDescription(dataDir: string): void {
  rmSync(descriptionFile(dataDir), { force: true });
}

export function descriptionFile(dataDir: string): string {
  return join(dataDir, 'embedded.json');
}

/** Keeps the demonstration tenants: their API keys can be had nowhere else once they are made. */
export function keepTenants(dataDir: string, tenants: readonly EmbeddedTenant[]): void {
  writePrivateFile(tenantsFile(dataDir), `${JSON.stringify(tenants, null, 2)}\n`);
}

/** The tenants that an earlier run on the same data made; empty when there was none. */
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
