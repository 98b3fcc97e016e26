import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

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

/**
 * A guard against requests to our own network (SSRF). Refuses every special range of IPv4 and IPv6, and whatever
 * ipaddr.js does not call unicast, except for the networks of `allowCidrs`. An IPv4 address written as IPv6
 * (::ffff:a.b.c.d) is judged as the IPv4 address it reaches. Throws InvalidCidrError.
 */
export function makeAddressGuard({ allowCidrs }: { allowCidrs: readonly string[] }): AddressGuard {
  const allowedNetworks = allowCidrs.map(parseNetwork);
  return {
    check(ip) {
      const address = parseAddress(ip);
      if (address === null) return { allowed: false, reason: 'not_an_address' };
      if (isInside(address, allowedNetworks)) return { allowed: true, reason: 'allow_listed' };
      const refused = address.range() !== 'unicast' || isInside(address, REFUSED_NETWORKS);
      return refused ? { allowed: false, reason: 'refused_range' } : { allowed: true, reason: 'public' };
    },
  };
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
