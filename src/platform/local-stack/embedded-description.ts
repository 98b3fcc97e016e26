import { readFileSync } from 'node:fs';
import { join } from 'node:path';

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
  /** Begins the links in responses and webhooks: apiUrl, or httpsUrl after `npm start -- --https`. */
  readonly publicUrl: string;
  readonly httpsUrl: string;
  /** PEM file of the authority that signed the certificate of httpsUrl. */
  readonly caPath: string;
  /** Without path. */
  readonly ingressUrl: string;
  readonly temporalAddress: string;
  readonly temporalUiUrl: string;
  readonly postgresUrl: string;
  readonly minioUrl: string;
  readonly minioAccessKey: string;
  readonly minioSecretKey: string;
  readonly sandboxUrl: string;
  readonly receiverUrl: string;
  readonly upstream: { readonly appSecret: string; readonly verifyToken: string };
  readonly tenants: readonly EmbeddedTenant[];
  readonly portalUrl: string;
  readonly portalUsers: readonly EmbeddedPortalUser[];
  /** Process numbers by part; empty when the stack does not run. */
  readonly pids: Readonly<Record<string, number>>;
}

export function descriptionFile(dataDir: string): string {
  return join(dataDir, 'embedded.json');
}

export interface EmbeddedPortalUser {
  readonly email: string;
  readonly name: string;
  readonly role: 'operator' | 'admin';
  readonly password: string;
}

/** The parsed content of a JSON file; undefined when it is missing or not JSON. */
export function readJsonFile(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}
