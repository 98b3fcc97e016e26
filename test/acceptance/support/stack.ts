import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Agent, fetch as fetchWith } from 'undici';
import { inject } from 'vitest';

export const PROJECT = fileURLToPath(new URL('../../../', import.meta.url));
const run = promisify(execFile);

export type Description = {
  apiUrl: string;
  publicUrl: string;
  httpsUrl: string;
  caPath: string;
  ingressUrl: string;
  temporalAddress: string;
  temporalUiUrl: string;
  postgresUrl: string;
  minioUrl: string;
  sandboxUrl: string;
  receiverUrl: string;
  upstream: { appSecret: string; verifyToken: string };
  tenants: {
    userId: number;
    businessName: string;
    wabaId: string;
    phoneNumberIds: string[];
    apiKey: string;
    endpointId: string;
    webhookSecret: string;
  }[];
  portalUrl: string;
  portalUsers: { email: string; name: string; role: string; password: string }[];
  pids: Record<string, number>;
};

/** What scripts know of the running stack: the content of embedded.json. */
export function description(): Description {
  return JSON.parse(readFileSync(descriptionPath(), 'utf8')) as Description;
}

export function descriptionPath(): string {
  return join(inject('stack').dataDir, 'embedded.json');
}

/** Fetches over https and trusts only the stack's own authority. */
export async function fetchSecurely(url: string, init: { headers?: Record<string, string> } = {}) {
  const dispatcher = new Agent({ connect: { ca: readFileSync(description().caPath) } });
  return await fetchWith(url, { ...init, dispatcher });
}

/** Runs an admin command as scripts do and returns the JSON it prints. */
export async function admin(...args: string[]): Promise<Record<string, unknown>> {
  const dataDir = inject('stack').dataDir;
  const command = ['src/main.ts', 'admin', ...args, '--json', '--data-dir', dataDir];
  const { stdout } = await run(process.execPath, command, { cwd: PROJECT });
  return JSON.parse(stdout) as Record<string, unknown>;
}
