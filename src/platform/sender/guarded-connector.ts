import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { buildConnector } from 'undici';
import type { ResolveHost } from '../http/host-resolver.ts';
import { ADDRESS_REFUSED_TEXT, type AddressGuard } from '../http/outbound-url.ts';
import type { ConnectionTerms } from './connection-terms.ts';
import type { ProxyRoute } from './proxy-route.ts';
import { openTunnel } from './proxy-tunnel.ts';
import { errorCode, SendError, tlsFailure } from './send-error.ts';

/** Called with the reason why a name was not connected to: the code of the resolver, or `blocked_address`. Not for tenants. */
export type UnusableNameObserver = (cause: { host: string; reason: string }) => void;

export type ConnectRules = ConnectionTerms & {
  guard: AddressGuard;
  resolve: ResolveHost;
  onUnusableName?: UnusableNameObserver | undefined;
  /** DNS, TCP and TLS together. */
  connectTimeoutMs: number;
  /** Certificates to trust in place of the well-known ones. */
  ca?: string | undefined;
  /** Through which every connection is made; without it they are made directly. */
  route?: ProxyRoute | undefined;
};

/** The TLS session of an origin, kept so that the next connection needs a shorter handshake. */
export type TlsSessionSlot = { session: Buffer | undefined };

/**
 * An undici connector that resolves the host itself, refuses it when any of its addresses is not allowed, and
 * connects to exactly the addresses it checked, so that a second DNS response cannot lead elsewhere. An IP literal,
 * for which no lookup would ever be made, goes through the same check. Fills in `phases()`, which it asks for once
 * per connection. Fails with SendError, or with the system's error of the TCP connection.
 */
export function makeGuardedConnector(
  rules: ConnectRules,
  tlsSession: TlsSessionSlot,
  newPhases: () => ConnectionPhases,
): buildConnector.connector {
  return (target, callback) => {
    const phases = newPhases();
    let socket: Socket | undefined;
    let finished = false;
    const finish = (error: Error | null): void => {
      if (finished) return;
      finished = true;
      clearTimeout(timer);
      if (error === null && socket !== undefined) {
        callback(null, socket);
        return;
      }
      socket?.destroy();
      callback(error ?? connectionFailed(), null);
    };
    const cancelled = new AbortController();
    const timer = setTimeout(() => {
      finish(new SendError('timeout', 'The connection was not made in time.'));
      cancelled.abort();
    }, rules.connectTimeoutMs);
    checkedAddresses(target, rules, phases)
      .then(async (addresses) => {
        if (finished) return;
        const tunnel = await tunnelTo(target, addresses, rules, { phases, signal: cancelled.signal });
        if (finished) return void tunnel?.destroy();
        socket = openSocket(target, { addresses, tunnel }, rules, tlsSession);
        if (tunnel === null) watchSocket(socket, target.protocol === 'https:', phases, finish);
        else watchTunnel(socket, target.protocol === 'https:', phases, finish);
      })
      .catch((error: unknown) => finish(error instanceof Error ? error : connectionFailed()));
  };
}

async function checkedAddresses(
  { hostname, port, protocol }: buildConnector.Options,
  rules: ConnectRules,
  phases: ConnectionPhases,
): Promise<string[]> {
  const isName = isIP(hostname) === 0;
  const addresses = isName ? await resolveTimed(hostname, rules, phases) : [hostname];
  const target = { hostname, port: Number(port) || (protocol === 'https:' ? 443 : 80), addresses };
  if (rules.guard.mayReach(target, rules.targets)) return addresses;
  if (isName) throw unusableName(hostname, 'blocked_address', rules);
  throw new SendError('blocked_address', ADDRESS_REFUSED_TEXT);
}

async function resolveTimed(
  hostname: string,
  rules: ConnectRules,
  phases: ConnectionPhases,
): Promise<string[]> {
  const startMs = performance.now();
  try {
    const addresses = await rules.resolve(hostname);
    if (addresses.length === 0) throw unusableName(hostname, 'no address', rules);
    return addresses;
  } catch (error) {
    if (error instanceof SendError) throw error;
    throw unusableName(hostname, errorCode(error) || 'other', rules);
  } finally {
    phases.dnsMs = elapsedMs(startMs);
  }
}

/** Tenants read the same of names that lead inside and of those that do not exist; the reason is for operators. */
function unusableName(host: string, reason: string, { onUnusableName }: ConnectRules): SendError {
  onUnusableName?.({ host, reason });
  return new SendError('dns', ADDRESS_REFUSED_TEXT);
}

/** More addresses of a name are not tried: they share the time. */
const MOST_ADDRESSES = 3;

/** A tunnel through the proxy to the first of the checked addresses that it reaches; null without a proxy. */
async function tunnelTo(
  { port, protocol }: buildConnector.Options,
  addresses: readonly string[],
  { route, connectTimeoutMs }: ConnectRules,
  { phases, signal }: { phases: ConnectionPhases; signal: AbortSignal },
): Promise<Socket | null> {
  if (route === undefined) return null;
  const startMs = performance.now();
  const tried = addresses.slice(0, MOST_ADDRESSES);
  let failure: SendError = connectionFailed();
  for (const address of tried) {
    const within = AbortSignal.any([signal, AbortSignal.timeout(Math.ceil(connectTimeoutMs / tried.length))]);
    phases.remoteAddress = address;
    const target = { address, port: Number(port) || (protocol === 'https:' ? 443 : 80) };
    try {
      const tunnel = await openTunnel(route.proxy, target, within);
      phases.connectMs = elapsedMs(startMs);
      return tunnel;
    } catch (error) {
      failure = error instanceof SendError ? error : connectionFailed();
      if (signal.aborted) break;
      // A proxy that answers others only lets this address wait.
      if (failure.errorClass === 'proxy' && (!within.aborted || !(await route.look()))) break;
      if (failure.errorClass === 'proxy')
        failure = new SendError('timeout', 'The connection was not made in time.');
    }
  }
  throw failure;
}

function openSocket(
  target: buildConnector.Options,
  { addresses, tunnel }: { addresses: readonly string[]; tunnel: Socket | null },
  rules: ConnectRules,
  tlsSession: TlsSessionSlot,
): Socket {
  const secure = target.protocol === 'https:';
  const options = {
    host: target.hostname,
    port: Number(target.port) || (secure ? 443 : 80),
    lookup: pinnedLookup(addresses),
    autoSelectFamily: true,
    // The default of 250 ms gives up on far-away receivers that have more than one address.
    autoSelectFamilyAttemptTimeout: Math.max(250, Math.floor(rules.connectTimeoutMs / 3)),
    noDelay: true,
  };
  if (!secure) return tunnel ?? connectTcp(options);
  const { clientCertificate } = rules;
  const socket = connectTls({
    ...(tunnel === null ? options : { socket: tunnel }),
    // Node checks the certificate of an address, which has no servername, against it.
    host: target.hostname,
    servername: isIP(target.hostname) === 0 ? target.hostname : '',
    ALPNProtocols: ['http/1.1'],
    session: tlsSession.session,
    ca: rules.ca,
    ...(clientCertificate && { cert: clientCertificate.certificate, key: clientCertificate.privateKey }),
  });
  return socket.on('session', (session) => {
    tlsSession.session = session;
  });
}

function pinnedLookup(addresses: readonly string[]): LookupFunction {
  return (_hostname, { all }, callback) => {
    const results = addresses.map((address) => ({ address, family: isIP(address) }));
    const [first] = results;
    if (all === true || first === undefined) callback(null, results);
    else callback(null, first.address, first.family);
  };
}

function watchSocket(
  socket: Socket,
  secure: boolean,
  phases: ConnectionPhases,
  finish: (error: Error | null) => void,
): void {
  const startMs = performance.now();
  let connectedMs: number | null = null;
  socket.once('connect', () => {
    connectedMs = performance.now();
    phases.connectMs = elapsedMs(startMs);
    phases.remoteAddress = socket.remoteAddress ?? null;
    if (!secure) finish(null);
  });
  socket.once('secureConnect', () => {
    phases.tlsMs = elapsedMs(connectedMs ?? startMs);
    finish(null);
  });
  // Stays for the life of the socket: an error between two owners must never be unhandled.
  socket.on('error', (error) => finish(secure && connectedMs !== null ? handshakeError(error) : error));
}

/** The tunnel is there: only TLS, with the receiver, is left. */
function watchTunnel(
  socket: Socket,
  secure: boolean,
  phases: ConnectionPhases,
  finish: (error: Error | null) => void,
): void {
  const startMs = performance.now();
  socket.on('error', (error) => finish(handshakeError(error)));
  socket.once('secureConnect', () => {
    phases.tlsMs = elapsedMs(startMs);
    finish(null);
  });
  if (!secure) finish(null);
}

function connectionFailed(): SendError {
  return new SendError('other', 'The connection failed.');
}

function handshakeError(error: Error): Error {
  const code = errorCode(error);
  if (code === 'ECONNRESET')
    return new SendError('reset', 'The connection ended during the TLS handshake.', error);
  const { errorClass, message } = tlsFailure(code);
  return new SendError(errorClass, message, error);
}

export type ConnectionPhases = {
  dnsMs: number | null;
  connectMs: number | null;
  tlsMs: number | null;
  remoteAddress: string | null;
  requests: number;
};

export function newConnectionPhases(): ConnectionPhases {
  return { dnsMs: null, connectMs: null, tlsMs: null, remoteAddress: null, requests: 0 };
}

/** Ms on the monotonic clock since `startMs` (performance.now()), to a tenth. */
export function elapsedMs(startMs: number): number {
  return Math.round((performance.now() - startMs) * 10) / 10;
}
