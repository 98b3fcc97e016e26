import { passContinue } from './generated/status-lines.js';

type Sent = { request: { origin?: unknown }; socket: Parameters<typeof passContinue>[0] };
type Channels = { subscribe(name: string, listener: (message: unknown) => void): void };
type Runtime = { process?: { getBuiltinModule?: (name: string) => unknown } };

const origins = new Set<string>();

/**
 * Lets the `fetch` of Node.js read past a `100 Continue` that a proxy of this origin says unasked: it breaks the connection
 * on it, against RFC 9110, 15.2 (nodejs/undici#197). Other runtimes read past it themselves.
 */
export function readPastContinue(origin: string): void {
  const isFirst = origins.size === 0;
  origins.add(origin);
  if (!isFirst) return;
  // Not by an import, which a bundler for browsers would not find.
  const { process } = globalThis as Runtime;
  const channels = process?.getBuiltinModule?.('node:diagnostics_channel') as Channels | undefined;
  channels?.subscribe('undici:client:sendHeaders', (message) => {
    const { request, socket } = message as Sent;
    if (origins.has(String(request.origin))) passContinue(socket);
  });
}
