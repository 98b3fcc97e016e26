import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

export class InvalidCidrError extends Error {
  constructor(cidr: string) {
    super(`${JSON.stringify(cidr)} is not a network in CIDR form, such as 10.1.0.0/16 or fd00::/8.`);
    this.name = 'InvalidCidrError';
  }
}

export type Address = ipaddr.IPv4 | ipaddr.IPv6;
export type Network = [Address, number];

/** Takes plain IPv4 and IPv6 only; the URL parser has turned every other spelling into these. */
export function parseAddress(ip: string): Address | null {
  switch (isIP(ip)) {
    case 4:
      return ipaddr.IPv4.parse(ip);
    case 6:
      // ipaddr.js reads ::8.8.8.8 as ::ffff:8.8.8.8; written in hex, an IPv4-compatible address stays what it is.
      return ipaddr.process(ip.replace(/(?:\d{1,3}\.){3}\d{1,3}/, quadToHex));
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

export function isInside(address: Address, networks: readonly Network[]): boolean {
  return networks.some(
    ([network, prefixBits]) => address.kind() === network.kind() && address.match(network, prefixBits),
  );
}

export function parseNetwork(cidr: string): Network {
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

export function isInNetworks(ip: string, networks: readonly string[]): boolean {
  const address = parseAddress(ip);
  return address !== null && isInside(address, networks.map(parseNetwork));
}
