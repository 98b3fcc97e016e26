import { connect as connectTcp, isIP, type Socket } from 'node:net';
import type { EgressProxy } from '../http/egress-proxy-url.ts';
import { makeHostResolver } from '../http/host-resolver.ts';
import { errorCode, SendError } from './send-error.ts';

const MAX_ANSWER_BYTES = 16 * 1024;
const resolveProxy = makeHostResolver();

/**
 * Opens a TCP connection to an address through the proxy, with CONNECT. The address is one that was checked, never a
 * name: what the proxy would resolve a name to could differ from it. `signal` ends the try and destroys the socket.
 * Rejects with SendError: `proxy` when the proxy itself is at fault, else what the proxy says of the address.
 */
export async function openTunnel(
  proxy: EgressProxy,
  target: { address: string; port: number },
  signal: AbortSignal,
): Promise<Socket> {
  const socket = await connectToProxy(proxy, signal);
  const end = () => socket.destroy();
  signal.addEventListener('abort', end);
  try {
    const answer = await askForTunnel(socket, proxy, target);
    const failure = failureOf(answer);
    if (failure !== null) throw failure;
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    signal.removeEventListener('abort', end);
  }
}

async function connectToProxy({ hostname, port }: EgressProxy, signal: AbortSignal): Promise<Socket> {
  const addresses = isIP(hostname) === 0 ? await resolveProxy(hostname).catch(() => []) : [hostname];
  if (addresses.length === 0) throw proxyFailure('its name does not resolve');
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  if (signal.aborted) throw proxyFailure('it does not answer');
  const socket = connectTcp({
    host: hostname,
    port,
    noDelay: true,
    autoSelectFamily: true,
    lookup: (_hostname, { all }, callback) => {
      const found = addresses.map((address) => ({ address, family: isIP(address) }));
      const [first] = found;
      if (all === true || first === undefined) callback(null, found);
      else callback(null, first.address, first.family);
    },
  });
  const end = () => {
    socket.destroy();
    reject(proxyFailure('it does not answer'));
  };
  signal.addEventListener('abort', end);
  socket.once('connect', () => resolve(socket));
  // Stays for the life of the socket: an error between two owners must never be unhandled.
  socket.on('error', (error) => reject(proxyFailure(REASONS[errorCode(error)] ?? 'it cannot be reached')));
  return await promise.finally(() => signal.removeEventListener('abort', end));
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'it refuses connections',
  ETIMEDOUT: 'it does not answer',
};

type Answer = { statusCode: number; isDenial: boolean };

async function askForTunnel(
  socket: Socket,
  { authorization }: EgressProxy,
  { address, port }: { address: string; port: number },
): Promise<Answer> {
  const authority = `${isIP(address) === 6 ? `[${address}]` : address}:${port}`;
  const headers = [`CONNECT ${authority} HTTP/1.1`, `Host: ${authority}`];
  if (authorization !== null) headers.push(`Proxy-Authorization: ${authorization}`);
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  let received = Buffer.alloc(0);
  const onData = (chunk: Buffer): void => {
    received = Buffer.concat([received, chunk]);
    let end = received.indexOf('\r\n\r\n');
    for (; isInterim(received, end); end = received.indexOf('\r\n\r\n'))
      received = received.subarray(end + 4);
    if (end === -1 && received.length < MAX_ANSWER_BYTES) return;
    const answer = end === -1 ? null : readAnswer(received.toString('latin1', 0, end));
    if (answer === null) {
      reject(proxyFailure('it does not speak HTTP'));
      return;
    }
    socket.off('data', onData).off('close', onClose);
    socket.pause();
    const rest = received.subarray(end + 4);
    if (rest.length > 0) socket.unshift(rest);
    resolve(answer);
  };
  const onClose = () => reject(proxyFailure('it closes connections without an answer'));
  socket.on('data', onData).once('close', onClose);
  socket.write(`${headers.join('\r\n')}\r\n\r\n`);
  return await promise;
}

/** Whether a whole response ends there that is not yet the answer. */
function isInterim(received: Buffer, end: number): boolean {
  return end !== -1 && /^HTTP\/1\.[01] 1(?!01)\d\d(?: |\r|$)/.test(received.toString('latin1', 0, end));
}

function readAnswer(head: string): Answer | null {
  const statusCode = /^HTTP\/1\.[01] (\d{3})(?: |\r|$)/.exec(head)?.[1];
  if (statusCode === undefined) return null;
  // Smokescreen answers 407 to addresses that it denies, and names the reason in its own header.
  const isDenial = statusCode === '403' || (statusCode === '407' && /\r\nx-smokescreen-error:/i.test(head));
  return { statusCode: Number(statusCode), isDenial };
}

function failureOf({ statusCode, isDenial }: Answer): SendError | null {
  if (statusCode >= 200 && statusCode <= 299) return null;
  if (isDenial)
    return new SendError(
      'proxy_refused',
      `The egress proxy of this installation does not allow this address (${statusCode}).`,
    );
  if (statusCode === 407) return proxyFailure('it does not accept our credentials (407)');
  if (statusCode === 504) return new SendError('timeout', 'The connection was not made in time.');
  if (statusCode >= 500)
    return new SendError('unreachable', `The egress proxy could not reach the address (${statusCode}).`);
  return proxyFailure(`it answers CONNECT with ${statusCode}`);
}

/** A failure that is ours: nothing is known of the receiver. */
function proxyFailure(reason: string): SendError {
  return new SendError('proxy', `The egress proxy of this installation does not work: ${reason}.`);
}

/** An address that every egress proxy should refuse: its own. */
const NOWHERE = { address: '127.0.0.1', port: 9 };

/**
 * Asks the proxy for a tunnel to itself, to see whether it answers and accepts our credentials. A refusal is the right
 * answer. Returns null when it works, else what is wrong, in a few words without the proxy's address.
 */
export async function lookAtProxy(proxy: EgressProxy, withinMs: number): Promise<ProxyLook> {
  try {
    (await openTunnel(proxy, NOWHERE, AbortSignal.timeout(withinMs))).destroy();
    return { trouble: null, isOpenInside: true };
  } catch (error) {
    const isTrouble = !(error instanceof SendError) || error.errorClass === 'proxy';
    const trouble = isTrouble && error instanceof Error ? error.message : null;
    return { trouble, isOpenInside: false };
  }
}

export type ProxyLook = {
  trouble: string | null;
  /** It made a tunnel to its own loopback address, which an egress proxy should refuse. */
  isOpenInside: boolean;
};
