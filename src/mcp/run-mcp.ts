import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { isApiKey } from '../keys/api-key.ts';
import type { AllowedLevel } from './allowed-levels.ts';
import { serveHttp } from './mcp-http.ts';
import { createMcpServer, makeTools } from './mcp-server.ts';

export type McpSettings = {
  url: string | undefined;
  keyFile: string | undefined;
  allowed: readonly AllowedLevel[];
  /** Null: stdin and stdout. */
  http: { port: number; host: string; allowedHosts: readonly string[] } | null;
};

class SettingError extends Error {}

/** Ends with its client or a signal; returns the exit code. */
export async function runMcp(environment: NodeJS.ProcessEnv, settings: McpSettings): Promise<number> {
  try {
    const url = baseUrl(settings.url ?? environment.HELIOGRAPH_URL);
    await (settings.http === null ? runStdio(url, environment, settings) : runHttp(url, settings));
    return 0;
  } catch (error) {
    // Standard output belongs to the protocol.
    log(error instanceof Error ? error.message : String(error));
    return error instanceof SettingError ? 2 : 1;
  }
}

async function runStdio(
  url: string,
  environment: NodeJS.ProcessEnv,
  { keyFile, allowed }: McpSettings,
): Promise<void> {
  const key = await readKey(keyFile, environment);
  const tools = makeTools(allowed);
  const handle = serveStdio(() => createMcpServer(tools, { url, key }), {
    onerror: (error) => log(error.message),
  });
  await Promise.race([once(process.stdin, 'end'), once(process.stdin, 'close'), signalled()]);
  await handle.close();
}

async function runHttp(apiUrl: string, { http, allowed }: McpSettings): Promise<void> {
  if (http === null) return;
  const server = await serveHttp(makeTools(allowed), { ...http, apiUrl, log });
  log(`listens at ${server.url} for ${apiUrl}; each request needs the API key of its caller`);
  await signalled();
  await server.close();
}

function baseUrl(text: string | undefined): string {
  if (text === undefined || text === '') {
    throw new SettingError('Name the gateway with --url or HELIOGRAPH_URL, such as https://gateway.example.');
  }
  const url = URL.parse(text);
  const isBase = url !== null && /^https?:$/.test(url.protocol) && `${url.search}${url.hash}` === '';
  if (!isBase || `${url.username}${url.password}` !== '') {
    throw new SettingError('The URL of the gateway must be like https://gateway.example.');
  }
  return url.href.replace(/\/$/, '');
}

async function readKey(keyFile: string | undefined, environment: NodeJS.ProcessEnv): Promise<string> {
  const given = keyFile === undefined ? environment.HELIOGRAPH_API_KEY : await readKeyFile(keyFile);
  if (given === undefined || given.trim() === '') {
    throw new SettingError(
      'Give the API key in HELIOGRAPH_API_KEY, or name a file that has it with --key-file.',
    );
  }
  const key = given.trim();
  if (!isApiKey(key)) throw new SettingError('The API key must be ck_ and 64 hexadecimal digits.');
  return key;
}

async function readKeyFile(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch {
    throw new SettingError(`The file ${path} cannot be read.`);
  }
}

async function signalled(): Promise<void> {
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
}

function log(line: string): void {
  process.stderr.write(`heliograph mcp: ${line}\n`);
}
