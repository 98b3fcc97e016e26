import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import type { FastifyInstance } from 'fastify';

const MAIN_SCRIPT = fileURLToPath(new URL('../../../clients/cli/src/main.ts', import.meta.url));

/** How today's hosts begin, and how those of the protocol of 2026 do. */
export const ERAS = ['legacy', 'auto'] as const;

export type Era = (typeof ERAS)[number];

type ToolAnswer = { isError: boolean; text: string };

/** The SDK's own client of a server. */
export type McpClient = {
  client: Client;
  call(name: string, args?: Record<string, unknown>): Promise<ToolAnswer>;
  /** What the server wrote for its operator. */
  stderr(): string;
  close(): Promise<void>;
};

/** Runs `heliograph mcp` as hosts do, with nothing in its environment but what they give. */
export async function stdioClient(
  environment: Record<string, string>,
  args: readonly string[] = [],
  era: Era = 'legacy',
): Promise<McpClient> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [MAIN_SCRIPT, 'mcp', ...args],
    env: { PATH: process.env.PATH ?? '', HELIOGRAPH_CONFIG_DIR: '/nowhere', ...environment },
    stderr: 'pipe',
  });
  let stderr = '';
  transport.stderr?.on('data', (chunk) => {
    stderr += chunk;
  });
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: era } });
  await client.connect(transport);
  return clientOf(client, () => stderr);
}

/** Connects by HTTP with the key of a caller. */
export async function httpClient(url: string, key: string, era: Era = 'legacy'): Promise<McpClient> {
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { authorization: `Bearer ${key}` } },
  });
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: era } });
  // The package declares an optional member in another way than this project's compiler options want.
  await client.connect(transport as Parameters<Client['connect']>[0]);
  return clientOf(client, () => '');
}

/** Lets an API listen; returns its base URL. */
export async function listen(app: FastifyInstance): Promise<string> {
  return await app.listen({ host: '127.0.0.1', port: 0 });
}

function clientOf(client: Client, stderr: () => string): McpClient {
  return {
    client,
    call: async (name, args = {}) => {
      const { content, isError = false } = await client.callTool({ name, arguments: args });
      return { isError, text: content.map((part) => (part.type === 'text' ? part.text : '')).join('') };
    },
    stderr,
    close: () => client.close(),
  };
}
