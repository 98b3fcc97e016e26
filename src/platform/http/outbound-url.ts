import { lookup, Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

const MAX_URL_LENGTH = 2048;

type EndpointUrlRefusal = {
  ok: false;
  code:
    | 'invalid_url'
    | 'url_too_long'
    | 'https_required'
    | 'credentials_in_url'
    | 'fragment_in_url'
    | 'address_not_allowed';
  /** Safe to show to the tenant: it never tells what a name resolved to. */
  message: string;
};
export type EndpointUrlVerdict = { ok: true; url: string } | EndpointUrlRefusal;

export type EndpointUrlRules = {
  allowHttp: boolean;
  guard: AddressGuard;
  /** Of the WABA; they narrow what the guard allows. */
  targets?: TargetLists;
};

/**
 * Judges a webhook URL by its text alone; both saving an endpoint and sending to it go through here, so that they
 * cannot disagree. Returns the URL as the WHATWG parser writes it, in which odd spellings of an address (0x7f.1,
 * 2130706433) have become plain ones.
 */
export function judgeEndpointUrl(
  text: unknown,
  { allowHttp, guard, targets }: EndpointUrlRules,
): EndpointUrlVerdict {
  if (typeof text !== 'string') return refuse('invalid_url', 'The URL must be a string.');
  if (text.length > MAX_URL_LENGTH)
    return refuse('url_too_long', `The URL is longer than ${MAX_URL_LENGTH} characters.`);
  // The parser would silently drop these, and the saved text would not be the one that is called.
  if (/[\s\p{Cc}]/u.test(text))
    return refuse('invalid_url', 'The URL contains a space or control character.');
  const url = URL.parse(text);
  if (url === null || url.port === '0') return refuse('invalid_url', 'The URL is not valid.');
  if (url.href.length > MAX_URL_LENGTH)
    return refuse('url_too_long', `The URL is longer than ${MAX_URL_LENGTH} characters.`);
  if (url.protocol !== 'https:' && !(allowHttp && url.protocol === 'http:')) {
    return refuse(
      'https_required',
      allowHttp ? 'The URL must begin with https:// or http://.' : 'The URL must begin with https://.',
    );
  }
  if (url.username !== '' || url.password !== '') {
    return refuse('credentials_in_url', 'The URL must not contain a user name or password.');
  }
  if (text.includes('#')) return refuse('fragment_in_url', 'The URL must not contain a fragment (#).');
  const address = addressLiteral(url.hostname);
  if (address !== null && !guard.check(address).allowed) return ADDRESS_REFUSAL;
  const addresses = address === null ? null : [address];
  if (!isTargetAllowed(targets, { ...targetOfUrl(url), addresses })) return ADDRESS_REFUSAL;
  return { ok: true, url: url.href };
}

/**
 * As `judgeEndpointUrl`, and resolves the name as far as that works: every address must be allowed, while a name that
 * does not resolve now is accepted, because it may tomorrow and the sender checks again at connect. Never rejects.
 */
export async function checkEndpointUrl(
  text: unknown,
  { resolve, ...rules }: EndpointUrlRules & { resolve?: ResolveHost },
): Promise<EndpointUrlVerdict> {
  const verdict = judgeEndpointUrl(text, rules);
  if (!verdict.ok || resolve === undefined) return verdict;
  const { hostname } = new URL(verdict.url);
  if (addressLiteral(hostname) !== null) return verdict;
  try {
    const addresses = await resolve(hostname);
    const isOpen = addresses.every((address) => rules.guard.check(address).allowed);
    const target = { ...targetOfUrl(new URL(verdict.url)), addresses };
    return isOpen && isTargetAllowed(rules.targets, target) ? verdict : ADDRESS_REFUSAL;
  } catch {
    return verdict;
  }
}

/** The IP address that a URL's hostname is, without the brackets of IPv6; null when it is a name. */
function addressLiteral(hostname: string): string | null {
  const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  return isIP(bare) === 0 ? null : bare;
}

const ADDRESS_REFUSAL = refuse(
  'address_not_allowed',
  'The URL leads to an address that webhooks are not sent to.',
);

function refuse(code: EndpointUrlRefusal['code'], message: string): EndpointUrlRefusal {
  return { ok: false, code, message };
}

/** `refused_range` is an address we never connect to unless an operator allowed its network. */
type AddressVerdict = {
  allowed: boolean;
  reason: 'public' | 'allow_listed' | 'refused_range' | 'not_an_address';
};

/** Decides which addresses webhooks may be sent to. */
export type AddressGuard = { check(ip: string): AddressVerdict };

/** An entry of the allow-list that is not a network in CIDR form. */
export class InvalidCidrError extends Error {
  constructor(cidr: string) {
    super(`${JSON.stringify(cidr)} is not a network in CIDR form, such as 10.1.0.0/16 or fd00::/8.`);
    this.name = 'InvalidCidrError';
  }
}

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Network = [Address, number];

/** Networks that no public receiver lives in: own host, private, link-local with cloud metadata, special purpose. */
const REFUSED_NETWORKS: readonly Network[] = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24'],
  ...['203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
  ...['::/8', '64:ff9b::/96', '64:ff9b:1::/48', '100::/64', '2001::/23', '2001:db8::/32', '2002::/16'],
  ...['3fff::/20', '5f00::/16', 'fc00::/7', 'fe80::/10', 'fec0::/10', 'ff00::/8'],
].map(parseNetwork);

/** Where clouds tell who asks them what a machine may do; never for webhooks, whatever a list says. */
const METADATA_NETWORKS: readonly Network[] = [
  ...[
    '169.254.169.254/32',
    '169.254.170.0/24',
    '169.254.169.123/32',
    '168.63.129.16/32',
    '100.100.100.200/32',
  ],
  ...['192.0.0.192/32', 'fd00:ec2::/32', 'fd20:ce::254/128'],
].map(parseNetwork);

/** Behind them a gateway (NAT64, RFC 6052 and 8215) reaches the IPv4 address in the last 32 bits. */
const NAT64_NETWORKS: readonly Network[] = ['64:ff9b::/96', '64:ff9b:1::/48'].map(parseNetwork);

/**
 * A guard against requests to our own network (SSRF). Refuses every special range of IPv4 and IPv6, and whatever
 * ipaddr.js does not call unicast, except for the networks of `allowCidrs`; cloud metadata always. An IPv4 address written as IPv6
 * (::ffff:a.b.c.d) is judged as the IPv4 address it reaches; that behind NAT64 must be allowed as well. Throws InvalidCidrError.
 */
export function makeAddressGuard({ allowCidrs }: { allowCidrs: readonly string[] }): AddressGuard {
  const allowedNetworks = allowCidrs.map(parseNetwork);
  const judge = (address: Address): AddressVerdict => {
    if (isInside(address, METADATA_NETWORKS)) return { allowed: false, reason: 'refused_range' };
    if (isInside(address, allowedNetworks)) return { allowed: true, reason: 'allow_listed' };
    const refused = address.range() !== 'unicast' || isInside(address, REFUSED_NETWORKS);
    return refused ? { allowed: false, reason: 'refused_range' } : { allowed: true, reason: 'public' };
  };
  return {
    check(ip) {
      const address = parseAddress(ip);
      if (address === null) return { allowed: false, reason: 'not_an_address' };
      const behind = behindNat64(address);
      const verdict = behind === null ? null : judge(behind);
      return verdict?.allowed === false ? verdict : judge(address);
    },
  };
}

function behindNat64(address: Address): Address | null {
  if (!isInside(address, NAT64_NETWORKS)) return null;
  return new ipaddr.IPv4(address.toByteArray().slice(-4));
}

/** Entries are `name`, `*.name`, an address or a network, each with `:port` if only that is meant. */
export type TargetLists = { allow: readonly string[]; deny: readonly string[] };

/** Where a request is to go; `addresses` null: not known yet. */
export type WebhookTarget = { hostname: string; port: number; addresses: readonly string[] | null };

/** Not an entry of such a list. */
export class InvalidTargetError extends Error {
  constructor(text: string) {
    super(`${JSON.stringify(text)} is no name, address or network, with or without a port.`);
    this.name = 'InvalidTargetError';
  }
}

type TargetEntry = { name: string | null; network: Network | null; port: number | null };

const NAME_ENTRY = /^(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*$/;

/** Reads an entry of a list. Throws InvalidTargetError. */
export function parseTarget(text: string): TargetEntry {
  const bare = text.trim().toLowerCase();
  const isPlainV6 = !bare.startsWith('[') && bare.split(':').length > 2;
  const [, bracketed, plain, port = null] = isPlainV6
    ? [null, null, bare]
    : (/^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(bare) ?? []);
  const host = bracketed ?? plain ?? '';
  const isPort = port === null || (Number(port) >= 1 && Number(port) <= 65_535);
  const isNetwork =
    bracketed !== null && bracketed !== undefined ? true : isPlainV6 || /^[\d./]+$/.test(host);
  if (!isPort || (!isNetwork && !NAME_ENTRY.test(host))) throw new InvalidTargetError(text);
  try {
    const network = isNetwork ? parseNetwork(networkOf(host)) : null;
    return { name: isNetwork ? null : host, network, port: port === null ? null : Number(port) };
  } catch {
    throw new InvalidTargetError(text);
  }
}

/**
 * Whether the lists of a WABA let a request go there: what is denied wins, and with an allow list only what it names is
 * left. Addresses that are not known yet are judged when the connection is made.
 */
export function isTargetAllowed(lists: TargetLists | undefined, target: WebhookTarget): boolean {
  if (lists === undefined) return true;
  const ofPort = (texts: readonly string[]) =>
    texts.map(parseTarget).filter(({ port }) => port === null || port === target.port);
  const [deny, allow] = [ofPort(lists.deny), ofPort(lists.allow)];
  const isNamed = (entries: readonly TargetEntry[]) =>
    entries.some(({ name }) => name !== null && isNameOf(target.hostname, name));
  const isIn = (ip: string, entries: readonly TargetEntry[]) => {
    const address = parseAddress(ip);
    const reached = address === null ? [] : [address, behindNat64(address) ?? address];
    return entries.some(({ network }) => network !== null && reached.some((one) => isInside(one, [network])));
  };
  if (isNamed(deny) || target.addresses?.some((address) => isIn(address, deny))) return false;
  if (lists.allow.length === 0 || isNamed(allow)) return true;
  if (target.addresses === null) return allow.some(({ network }) => network !== null);
  return target.addresses.length > 0 && target.addresses.every((address) => isIn(address, allow));
}

function isNameOf(hostname: string, pattern: string): boolean {
  const name = hostname.toLowerCase().replace(/\.$/, '');
  return pattern.startsWith('*.') ? name.endsWith(pattern.slice(1)) : name === pattern;
}

function targetOfUrl({ hostname, port, protocol }: URL): Pick<WebhookTarget, 'hostname' | 'port'> {
  return { hostname, port: Number(port) || (protocol === 'https:' ? 443 : 80) };
}

/** Takes plain IPv4 and IPv6 only; the URL parser has turned every other spelling into these. */
function parseAddress(ip: string): Address | null {
  switch (isIP(ip)) {
    case 4:
      return ipaddr.IPv4.parse(ip);
    case 6:
      // ipaddr.js reads ::8.8.8.8 as ::ffff:8.8.8.8; written in hex, an IPv4-compatible address stays what it is.
      return ipaddr.process(ip.replace(/\d+\.\d+\.\d+\.\d+/, quadToHex));
    default:
      return null;
  }
}

function quadToHex(quad: string): string {
  const [a, b, c, d] = ipaddr.IPv4.parse(quad).octets;
  return [((a ?? 0) << 8) + (b ?? 0), ((c ?? 0) << 8) + (d ?? 0)]
    .map((group) => group.toString(16))
    .join(':');
}

function isInside(address: Address, networks: readonly Network[]): boolean {
  return networks.some(
    ([network, prefixBits]) => address.kind() === network.kind() && address.match(network, prefixBits),
  );
}

function parseNetwork(cidr: string): Network {
  try {
    return ipaddr.parseCIDR(cidr);
  } catch {
    throw new InvalidCidrError(cidr);
  }
}

/** A network as CIDR, made of CIDR or of a single address. Throws InvalidCidrError. */
export function networkOf(text: string): string {
  const address = parseAddress(text);
  const cidr = address === null ? text : `${text}/${address.kind() === 'ipv4' ? 32 : 128}`;
  const [network, prefixBits] = parseNetwork(cidr);
  return `${network.toString()}/${prefixBits}`;
}

/** Whether an address is in one of these networks (CIDR). */
export function isInNetworks(ip: string, networks: readonly string[]): boolean {
  const address = parseAddress(ip);
  return address !== null && isInside(address, networks.map(parseNetwork));
}

/** All addresses of a host name; rejects when there is none. */
export type ResolveHost = (hostname: string) => Promise<string[]>;

/** Errors after which the hosts file and the search domains, which only the system's resolver knows, are asked. */
const ASK_SYSTEM = new Set(['ENOTFOUND', 'ENODATA', 'ECONNREFUSED']);
const LOCAL_NAME = /(?:^|\.)localhost\.?$/i;

/**
 * Resolves over DNS without the system's resolver, because that one blocks a thread of a pool of four: one tenant
 * whose name server hangs would hold up the names of all others. IPv4 comes first; names that DNS does not
 * know (hosts file, search domains) are left to the system's resolver. Waits about 3 s for a dead server.
 * `servers` (`address:port`) takes the place of those that the system is configured with.
 */
export function makeHostResolver({ servers }: { servers?: readonly string[] } = {}): ResolveHost {
  const resolver = new Resolver({ timeout: 1_000, tries: 2 });
  if (servers !== undefined) resolver.setServers(servers);
  return async (hostname) => {
    if (LOCAL_NAME.test(hostname)) return askSystem(hostname.replace(/\.$/, ''));
    const results = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
    const addresses = results.flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
    if (addresses.length > 0) return addresses;
    const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
    const worst = failures.find(({ code }) => !ASK_SYSTEM.has(code));
    if (worst !== undefined) throw worst;
    return askSystem(hostname);
  };
}

async function askSystem(hostname: string): Promise<string[]> {
  const found = await lookup(hostname, { all: true, order: 'ipv4first' });
  return found.map(({ address }) => address);
}

/**
 * An endpoint's URL for logs, histories and those who may not change it: origin, path and the names of the query. What
 * stands behind them, and user and password, may be a credential.
 */
export function shownUrl(url: string): string {
  const parsed = URL.parse(url);
  if (parsed === null) return '(invalid URL)';
  const parts = parsed.search === '' ? [] : parsed.search.slice(1).split('&').map(masked);
  const query = parts.length === 0 ? '' : `?${parts.join('&')}`;
  return `${parsed.origin}${parsed.pathname}${query}`;
}

/** Without a name, the part is all value. */
function masked(part: string): string {
  const equals = part.indexOf('=');
  return equals < 1 ? '***' : `${part.slice(0, equals)}=***`;
}

const MAX_RETRY_AFTER_MS = 24 * 60 * 60 * 1_000;

/** The three date forms of RFC 9110 §5.6.7; Date.parse alone would also take `2 foo` for a date. */
const HTTP_DATE_FORMS = [
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/,
  /^(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/,
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/,
];

/**
 * Ms that a Retry-After header (RFC 9110 §10.2.3: whole seconds or an HTTP date) asks to wait, at most 24 hours;
 * 0 for a date in the past, null for a missing or malformed header. `nowMs` is Unix time.
 */
export function parseRetryAfter(header: string | undefined, nowMs: number): number | null {
  const value = header?.trim() ?? '';
  if (/^\d+$/.test(value)) return Math.min(Number(value) * 1_000, MAX_RETRY_AFTER_MS);
  if (!HTTP_DATE_FORMS.some((form) => form.test(value))) return null;
  const dateMs = Date.parse(value.endsWith('GMT') ? value : `${value} GMT`);
  return Number.isNaN(dateMs) ? null : Math.min(Math.max(dateMs - nowMs, 0), MAX_RETRY_AFTER_MS);
}

/**
 * Whether two URLs, as the WHATWG parser writes them, lead to the same receiver: host, port and path decide. Query,
 * scheme (a redirect mostly), a trailing slash or dot and the case of percent-encoding do not.
 */
export function isSameTarget(first: string, second: string): boolean {
  const target = targetOf(first);
  return target !== null && target === targetOf(second);
}

function targetOf(text: string): string | null {
  const url = URL.parse(text);
  if (url === null) return null;
  const path = decoded(url.pathname).replace(/\/+$/, '');
  return `${url.hostname.replace(/\.$/, '')}:${url.port} ${path}`;
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
