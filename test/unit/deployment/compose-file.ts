import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

/** The parts of a Compose service that the checks look at, as docker-compose.yml writes them. */
export type ComposeService = {
  image?: string;
  build?: string;
  environment?: Record<string, string>;
  volumes?: string[];
  ports?: string[];
  depends_on?: Record<string, { condition: string }>;
  healthcheck?: { test?: string[]; disable?: boolean };
  restart?: string;
};

type ComposeFile = { services: Record<string, ComposeService>; volumes: Record<string, unknown> };

/** Reads a file of the repository by its path from the root. */
export function repositoryFile(path: string): string {
  return readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
}

export const COMPOSE_TEXT = repositoryFile('docker-compose.yml');

export const COMPOSE = parse(COMPOSE_TEXT, { merge: true }) as ComposeFile;

/** A service of docker-compose.yml; throws when there is none of that name. */
export function composeService(name: string): ComposeService {
  const service = COMPOSE.services[name];
  if (service === undefined) throw new Error(`docker-compose.yml has no service ${name}`);
  return service;
}

const VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?:(:[-?])([^}]*))?\}/g;

/** Every ${VARIABLE} in a text, and whether Compose refuses to start without it. */
export function variablesIn(text: string): { name: string; required: boolean }[] {
  return [...text.matchAll(VARIABLE)].map(([, name = '', kind]) => ({ name, required: kind === ':?' }));
}

/** What Compose makes of a text: the value given, else the default after `:-`, else nothing. */
export function substitute(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(VARIABLE, (_all, name: string, kind: string | undefined, rest: string | undefined) => {
    return values[name] || (kind === ':-' ? (rest ?? '') : '');
  });
}
