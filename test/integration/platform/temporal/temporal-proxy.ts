import { readFileSync } from 'node:fs';
import {
  type ClientHttp2Session,
  connect,
  createSecureServer,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import type { LocalCertificate } from '../../../../dev/embedded/certificate.ts';

type Guard = {
  certificate: LocalCertificate;
  /** Only clients with a certificate that this one vouches for come in. */
  clientCertificate?: string;
  /** Only calls with this key are let through. */
  apiKey?: string;
  /** As Temporal Cloud: what only administrators may do is refused. */
  refusesOperators?: boolean;
};

/** Temporal as it is reached over networks of others: TLS before the real server, by gRPC call. */
export type TemporalProxy = {
  address: string;
  /** Paths of the calls that were let through. */
  passed: Set<string>;
  /** Paths of the calls that were refused. */
  refused: Set<string>;
};

const PERMISSION_DENIED = '7';

export async function startTemporalProxy(target: string, guard: Guard): Promise<TemporalProxy> {
  const passed = new Set<string>();
  const refused = new Set<string>();
  const upstream = connect(`http://${target}`);
  upstream.on('error', () => undefined);
  const server = createSecureServer({
    cert: readFileSync(guard.certificate.certPath),
    key: readFileSync(guard.certificate.keyPath),
    ...(guard.clientCertificate !== undefined && {
      requestCert: true,
      rejectUnauthorized: true,
      ca: guard.clientCertificate,
    }),
  });
  const sessions = new Set<{ destroy(): void }>();
  server.on('session', (session) => sessions.add(session));
  server.on('stream', (stream, headers) => {
    stream.on('error', () => undefined);
    const path = headers[':path'] ?? '';
    if (isLetThrough(guard, path, headers)) {
      passed.add(path);
      forward(upstream, stream, headers);
      return;
    }
    refused.add(path);
    const status = { 'grpc-status': PERMISSION_DENIED, 'grpc-message': 'Request unauthorized.' };
    stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...status }, { endStream: true });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const session of sessions) session.destroy();
    upstream.destroy();
    server.close();
  });
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, passed, refused };
}

function isLetThrough(
  { apiKey, refusesOperators }: Guard,
  path: string,
  headers: IncomingHttpHeaders,
): boolean {
  if (apiKey !== undefined && headers.authorization !== `Bearer ${apiKey}`) return false;
  return refusesOperators !== true || !path.startsWith('/temporal.api.operatorservice.');
}

function forward(
  upstream: ClientHttp2Session,
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
): void {
  const call = upstream.request({ ...headers, ':scheme': 'http' });
  let trailers: IncomingHttpHeaders = {};
  call.on('error', () => stream.close());
  call.on('trailers', (received) => {
    trailers = received;
  });
  call.on('response', ({ ':status': status, ...received }) => {
    // A call that fails at once has its trailers in the place of headers.
    const isWhole = received['grpc-status'] !== undefined;
    if (stream.destroyed) return;
    stream.respond(
      { ':status': status ?? 200, ...received },
      { endStream: isWhole, waitForTrailers: !isWhole },
    );
    if (!isWhole) call.pipe(stream);
  });
  stream.on('wantTrailers', () => stream.sendTrailers(trailers));
  stream.on('close', () => call.close());
  stream.pipe(call);
}
