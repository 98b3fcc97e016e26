import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

/** The parts of a Compose service that the checks look at, as docker-compose.yml writes them. */
export type ComposeService = {
  profiles?: string[];
  image?: string;
  user?: string;
  build?: string;
  entrypoint?: string[];
  command?: string[];
  env_file?: string[];
  environment?: Record<string, string>;
  secrets?: (string | { source: string; target: string })[];
  volumes?: string[];
  ports?: string[];
  networks?: string[] | Record<string, unknown>;
  depends_on?: Record<string, { condition: string; required?: boolean }> | string[];
  healthcheck?: { test?: string[]; disable?: boolean };
  deploy?: { replicas?: string; resources?: { limits?: { memory?: string } } };
  logging?: { options?: Record<string, string> };
  read_only?: boolean;
  cap_drop?: string[];
  security_opt?: string[];
  restart?: string;
};

type ComposeFile = {
  services: Record<string, ComposeService>;
  networks: Record<string, { internal?: boolean }>;
  volumes: Record<string, unknown>;
  secrets: Record<string, { file: string }>;
};

/** Reads a file of the repository by its path from the root. */
export function repositoryFile(path: string): string {
  return readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
}

export const COMPOSE_TEXT = repositoryFile('docker-compose.yml');

/** A Compose file of the repository. */
export function readCompose(path: string): ComposeFile {
  return parse(repositoryFile(path), { merge: true }) as ComposeFile;
}

export const COMPOSE = readCompose('docker-compose.yml');

/** A service of docker-compose.yml; throws when there is none of that name. */
export function composeService(name: string): ComposeService {
  const service = COMPOSE.services[name];
  if (service === undefined) throw new Error(`docker-compose.yml has no service ${name}`);
  return service;
}

const VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;

/** The name of every ${VARIABLE} in a text. */
export function variablesIn(text: string): string[] {
  return [...text.matchAll(VARIABLE)].map(([, name = '']) => name);
}

/** What Compose makes of a text where `.env` sets nothing. */
export function substitute(text: string): string {
  return text.replace(VARIABLE, (_all, _name: string, fallback: string | undefined) => fallback ?? '');
}

/** The lines `NAME=value` of a file of variables. */
export function variableLines(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]),
  );
}
