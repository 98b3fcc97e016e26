import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';

export type DatabaseTarget = {
  /** Several are one database with standbys. */
  readonly hosts: readonly DatabaseHost[];
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly database: string | undefined;
  /** Whether a host is used only after it was asked if it takes writes. */
  readonly needsPrimary: boolean;
  readonly tlsMode: TlsMode;
  readonly tlsFiles: { readonly ca?: string; readonly cert?: string; readonly key?: string };
  readonly channelBinding: boolean;
};

/** A host that begins with a slash is the directory of a socket. */
export type DatabaseHost = { readonly host: string; readonly port: number };

const TLS_MODES = ['disable', 'require', 'verify-ca', 'verify-full'] as const;
type TlsMode = (typeof TLS_MODES)[number];

/** What is wrong with the URL of a database; holds nothing of it but names of parameters. */
export class DatabaseUrlError extends Error {
  override readonly name = 'DatabaseUrlError';
}

const FORM = /^postgres(?:ql)?:\/\/(?:([^/?#]*)@)?([^@/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/;
const HOST = /^(\[[0-9A-Fa-f:.]+\]|[^\s:[\]]+)(?::(\d{1,5}))?$/;
const DEFAULT_PORT = 5432;

const PARAMETERS = [
  ...['host', 'port', 'user', 'password', 'dbname', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey'],
  ...['target_session_attrs', 'channel_binding'],
];

/**
 * Reads `postgresql://user:password@host:port,host:port/database?parameters`, with the parameters and meanings of
 * PostgreSQL's own libraries. Throws DatabaseUrlError.
 */
export function parseDatabaseUrl(url: string): DatabaseTarget {
  const [whole, userInfo = '', hostList = '', name = '', query = ''] = FORM.exec(url.trim()) ?? [];
  if (whole === undefined) {
    throw new DatabaseUrlError(
      'must be postgresql://user:password@host:5432/name, special characters as %-codes',
    );
  }
  const parameters = new URLSearchParams(query);
  for (const given of parameters.keys()) {
    if (!PARAMETERS.includes(given))
      throw new DatabaseUrlError(`has the parameter ${given}, which is not supported`);
  }
  const parameter = (key: string) => parameters.get(key) || undefined;
  const separator = userInfo.includes(':') ? userInfo.indexOf(':') : userInfo.length;
  const hosts = readHosts(parameter('host') ?? decoded(hostList), parameter('port'));
  return {
    hosts,
    user: parameter('user') ?? (decoded(userInfo.slice(0, separator)) || undefined),
    password: parameter('password') ?? (decoded(userInfo.slice(separator + 1)) || undefined),
    database: parameter('dbname') ?? (decoded(name) || undefined),
    needsPrimary: needsPrimary(parameter('target_session_attrs'), hosts),
    tlsMode: readTlsMode(parameter('sslmode'), parameter('sslrootcert')),
    tlsFiles: tlsFilesOf(parameter),
    channelBinding: ['prefer', 'require'].includes(parameter('channel_binding') ?? ''),
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new DatabaseUrlError('holds a % that does not begin a %-code');
  }
}

function readHosts(list: string, ports: string | undefined): DatabaseHost[] {
  const portList = ports?.split(',') ?? [];
  return list.split(',').map((text, index) => {
    const [, host, ownPort] = text.startsWith('/') ? ['', text] : (HOST.exec(text) ?? []);
    if (host === undefined) throw new DatabaseUrlError('names a host that is not host or host:port');
    const port = Number(ownPort ?? portList[index] ?? portList[0] ?? DEFAULT_PORT);
    if (!(Number.isInteger(port) && port > 0 && port < 65_536))
      throw new DatabaseUrlError('names a port that is not one');
    return { host: host.replace(/^\[|\]$/g, ''), port };
  });
}

/** Of several hosts only the one that takes writes is of use, whatever the URL asks for. */
function needsPrimary(wanted: string | undefined, hosts: readonly DatabaseHost[]): boolean {
  if (wanted === undefined || wanted === 'any') return hosts.length > 1;
  if (wanted === 'read-write' || wanted === 'primary') return true;
  throw new DatabaseUrlError(
    'asks by target_session_attrs for a server that does not take writes: use read-write',
  );
}

/** As with PostgreSQL's own libraries, `require` checks the authority once there is a file of them. */
function readTlsMode(mode = 'disable', rootCert?: string): TlsMode {
  const known = TLS_MODES.find((one) => one === mode);
  if (known === undefined)
    throw new DatabaseUrlError(`has an sslmode that is not one of ${TLS_MODES.join(', ')}`);
  return known === 'require' && rootCert !== undefined ? 'verify-ca' : known;
}

function tlsFilesOf(parameter: (key: string) => string | undefined): DatabaseTarget['tlsFiles'] {
  const [ca, cert, key] = [parameter('sslrootcert'), parameter('sslcert'), parameter('sslkey')];
  if ((cert === undefined) !== (key === undefined))
    throw new DatabaseUrlError('needs sslcert and sslkey together');
  return {
    ...(ca !== undefined && ca !== 'system' && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
  };
}

/** How the driver does TLS for a target; false: not at all. Throws what reading the files throws. */
export function tlsOptionsOf({ tlsMode, tlsFiles }: DatabaseTarget): ConnectionOptions | false {
  if (tlsMode === 'disable') return false;
  const files = Object.entries(tlsFiles).map(([name, path]) => [name, readFileSync(path, 'utf8')]);
  return {
    ...Object.fromEntries(files),
    rejectUnauthorized: tlsMode !== 'require',
    ...(tlsMode === 'verify-ca' && { checkServerIdentity: () => undefined }),
  };
}
