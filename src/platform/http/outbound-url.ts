import { createHash } from 'node:crypto';
import { isIP } from 'node:net';
import type { ResolveHost } from './host-resolver.ts';
import { behindNat64, NAT64_NETWORKS, parseNat64Prefix } from './nat64.ts';
import { type Address, isInside, type Network, networkOf, parseAddress, parseNetwork } from './networks.ts';

const MAX_URL_LENGTH = 2048;

type EndpointUrlRefusal = {
  ok: false;
  code:
    | 'invalid_url'
    | 'url_too_long'
    | 'https_required'
    | 'credentials_in_url'
    | 'fragment_in_url'
    | 'port_not_allowed'
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
  const addresses = address === null ? null : [address];
  if (!guard.mayReach({ ...targetOfUrl(url), addresses }, targets)) return ADDRESS_REFUSAL;
  return { ok: true, url: url.href };
}

export type EndpointUrlCheck = EndpointUrlRules & {
  resolve?: ResolveHost;
  /** That a URL may name; empty: any. The sender does not ask, so URLs that are stored stay. */
  ports?: readonly number[];
  /** Stored already: it may keep its port. */
  presentUrl?: string | null;
  /** Called before a name is looked up; what it throws is thrown. */
  beforeLookup?: () => Promise<void>;
  /** Of a name that does not resolve now. Who only asks hears the same as of one that leads inside. */
  unresolved?: 'accept' | 'refuse';
};

/**
 * As `judgeEndpointUrl`, and resolves the name as far as that works: every address must be allowed, while a name that
 * does not resolve now is accepted by default, because it may tomorrow and the sender checks again at connect.
 */
export async function checkEndpointUrl(text: unknown, check: EndpointUrlCheck): Promise<EndpointUrlVerdict> {
  const { resolve, ports = [], presentUrl, beforeLookup, unresolved = 'accept', ...rules } = check;
  const verdict = judgeEndpointUrl(text, rules);
  if (!verdict.ok) return verdict;
  const target = targetOfUrl(new URL(verdict.url));
  if (ports.length > 0 && !ports.includes(target.port) && verdict.url !== presentUrl)
    return refuse('port_not_allowed', `The URL must use one of these ports: ${ports.join(', ')}.`);
  if (resolve === undefined || addressLiteral(target.hostname) !== null) return verdict;
  await beforeLookup?.();
  const addresses = await resolve(target.hostname).catch(() => []);
  if (addresses.length === 0) return unresolved === 'accept' ? verdict : ADDRESS_REFUSAL;
  return rules.guard.mayReach({ ...target, addresses }, rules.targets) ? verdict : ADDRESS_REFUSAL;
}

/** The IP address that a URL's hostname is, without the brackets of IPv6; null when it is a name. */
function addressLiteral(hostname: string): string | null {
  const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  return isIP(bare) === 0 ? null : bare;
}

/** One text for both, so that no tenant can ask which names exist inside. */
export const ADDRESS_REFUSED_TEXT =
  'The URL does not resolve, or leads to an address that webhooks are not sent to.';

const ADDRESS_REFUSAL = refuse('address_not_allowed', ADDRESS_REFUSED_TEXT);

function refuse(code: EndpointUrlRefusal['code'], message: string): EndpointUrlRefusal {
  return { ok: false, code, message };
}

/** `refused_range` is an address we never connect to unless an operator allowed its network. */
type AddressVerdict = {
  allowed: boolean;
  reason: 'public' | 'allow_listed' | 'refused_range' | 'not_an_address';
};

export type AddressGuard = {
  check(ip: string): AddressVerdict;
  /** Whether every address that is known is allowed, and the target by the lists of the installation and of a WABA. */
  mayReach(target: WebhookTarget, lists?: TargetLists): boolean;
};

type GuardRules = {
  allowCidrs: readonly string[];
  /** Targets that no webhook of the installation reaches, whatever else allows them. */
  deny?: readonly string[];
  /** Networks in which a gateway of the operator's (NAT64) reaches IPv4 addresses. */
  nat64Prefixes?: readonly string[];
};

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

/**
 * A guard against requests to our own network (SSRF). Refuses every special range of IPv4 and IPv6, and whatever
 * ipaddr.js does not call unicast, except for the networks of `allowCidrs`; cloud metadata always. An IPv4 address written as IPv6
 * (::ffff:a.b.c.d) is judged as the IPv4 address it reaches; that behind NAT64 must be allowed as well. Throws InvalidCidrError
 * and InvalidTargetError.
 */
export function makeAddressGuard({ allowCidrs, deny = [], nat64Prefixes = [] }: GuardRules): AddressGuard {
  const allowedNetworks = allowCidrs.map(parseNetwork);
  const nat64Networks = [...NAT64_NETWORKS, ...nat64Prefixes.map(parseNat64Prefix)];
  for (const text of deny) parseTarget(text);
  const judge = (address: Address): AddressVerdict => {
    if (isInside(address, METADATA_NETWORKS)) return { allowed: false, reason: 'refused_range' };
    if (isInside(address, allowedNetworks)) return { allowed: true, reason: 'allow_listed' };
    const refused = address.range() !== 'unicast' || isInside(address, REFUSED_NETWORKS);
    return refused ? { allowed: false, reason: 'refused_range' } : { allowed: true, reason: 'public' };
  };
  const check = (ip: string): AddressVerdict => {
    const address = parseAddress(ip);
    if (address === null) return { allowed: false, reason: 'not_an_address' };
    const behind = behindNat64(address, nat64Networks);
    const verdict = behind === null ? null : judge(behind);
    return verdict?.allowed === false ? verdict : judge(address);
  };
  return {
    check,
    mayReach: (target, lists) =>
      (target.addresses ?? []).every((address) => check(address).allowed) &&
      isTargetAllowed({ allow: [], deny }, target, nat64Networks) &&
      isTargetAllowed(lists, target, nat64Networks),
  };
}

/** Entries are `name`, `*.name`, an address or a network, each with `:port` if only that is meant. */
export type TargetLists = { allow: readonly string[]; deny: readonly string[] };

/** Where a request is to go; `addresses` null: not known yet. */
export type WebhookTarget = { hostname: string; port: number; addresses: readonly string[] | null };

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
export function isTargetAllowed(
  lists: TargetLists | undefined,
  target: WebhookTarget,
  nat64Networks: readonly Network[] = NAT64_NETWORKS,
): boolean {
  if (lists === undefined) return true;
  const ofPort = (texts: readonly string[]) =>
    texts.map(parseTarget).filter(({ port }) => port === null || port === target.port);
  const [deny, allow] = [ofPort(lists.deny), ofPort(lists.allow)];
  const isNamed = (entries: readonly TargetEntry[]) =>
    entries.some(({ name }) => name !== null && isNameOf(target.hostname, name));
  const isIn = (ip: string, entries: readonly TargetEntry[]) => {
    const address = parseAddress(ip);
    const reached = address === null ? [] : [address, behindNat64(address, nat64Networks) ?? address];
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

const HASH_CHARS = 6;

/**
 * An endpoint's URL for logs, histories and those who may not change it: its origin, and a hash of the rest, by which
 * endpoints of one server are distinguished. Path, query, user and password may be a credential; the hash is too short to
 * confirm a guess.
 */
export function shownUrl(url: string): string {
  const parsed = URL.parse(url);
  if (parsed === null) return '(invalid URL)';
  const rest = `${parsed.pathname}${parsed.search}`;
  if (rest === '/') return `${parsed.origin}/`;
  return `${parsed.origin}/***${createHash('sha256').update(rest).digest('hex').slice(0, HASH_CHARS)}`;
}
