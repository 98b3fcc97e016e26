import { EXIT, Failure, wrongUsage } from './failure.ts';
import { readSecretFile } from './given-files.ts';
import { serviceUrl } from './service-url.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Whom to speak to, and as whom. */
export type Account = { url: string; apiKey: string };

/** What the command line says. */
export type Given = { url?: string | undefined; keyFile?: string | undefined };

type Sources = { given: Given; env: Environment; stored: { url: string } | null };

/** The base URL to use; null when none is known. */
export function urlOf({ given, env, stored }: Sources): string | null {
  if (given.url !== undefined) return serviceUrl(given.url, '--url');
  if (env.HELIOGRAPH_URL) return serviceUrl(env.HELIOGRAPH_URL, 'HELIOGRAPH_URL');
  return stored === null ? null : serviceUrl(stored.url, 'The stored URL');
}

/** The account to use. The stored key goes to the service that it was stored for, and to no other. */
export function accountOf(sources: Sources & { storedKey(): string | undefined }): Account {
  const { given, env, stored } = sources;
  const url = urlOf(sources);
  const key = givenKey(given, env);
  if (url !== null && key !== null) return { url, apiKey: key };
  const kept = key === null ? sources.storedKey() : undefined;
  if (url === null || stored === null || kept === undefined) {
    throw new Failure(
      EXIT.key,
      'You are not logged in. Run "heliograph login", or set HELIOGRAPH_URL and HELIOGRAPH_API_KEY.',
    );
  }
  if (new URL(url).origin === new URL(stored.url).origin) {
    return { url, apiKey: apiKeyOf(kept, 'The stored API key') };
  }
  throw new Failure(
    EXIT.key,
    `The stored API key is for ${stored.url} and is not sent to ${url}. Set HELIOGRAPH_API_KEY, name --key-file, or run "heliograph login --url ${url}".`,
  );
}

function givenKey({ keyFile }: Given, env: Environment): string | null {
  if (keyFile !== undefined) return apiKeyOf(readSecretFile(keyFile, 'key-file'), `What ${keyFile} holds`);
  return env.HELIOGRAPH_API_KEY ? apiKeyOf(env.HELIOGRAPH_API_KEY, 'HELIOGRAPH_API_KEY') : null;
}

const KEY = /^ck_[0-9a-f]{64}$/;

/** An API key from `source`, without the line break that files and secrets end with. Throws Failure, which never shows it. */
export function apiKeyOf(text: string, source: string): string {
  const key = text.trim();
  if (KEY.test(key)) return key;
  throw wrongUsage(`${source} is no API key, which is ck_ and 64 hexadecimal digits: copy it again.`);
}
