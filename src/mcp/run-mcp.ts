import { once } from 'node:events';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import type { AllowedLevel } from './allowed-levels.ts';
import type { ApiAccess } from './api-call.ts';
import { serveHttp } from './mcp-http.ts';
import { createMcpServer, makeTools } from './mcp-server.ts';

/** Serves standard input and output until the client or a signal ends it. */
export async function runStdio(access: ApiAccess, allowed: readonly AllowedLevel[]): Promise<void> {
  const tools = makeTools(allowed);
  const handle = serveStdio(() => createMcpServer(tools, access), {
    onerror: (error) => log(error.message),
  });
  await Promise.race([once(process.stdin, 'end'), once(process.stdin, 'close'), signalled()]);
  await handle.close();
}

export type HttpPlace = { port: number; host: string; allowedHosts: readonly string[] };

/** Serves HTTP until a signal ends it. */
export async function runHttp(
  apiUrl: string,
  allowed: readonly AllowedLevel[],
  place: HttpPlace,
): Promise<void> {
  const server = await serveHttp(makeTools(allowed), { ...place, apiUrl, log });
  log(`listens at ${server.url} for ${apiUrl}; each request needs the API key of its caller`);
  await signalled();
  await server.close();
}

async function signalled(): Promise<void> {
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
}

/** Standard output belongs to the protocol. */
function log(line: string): void {
  process.stderr.write(`heliograph mcp: ${line}\n`);
}
