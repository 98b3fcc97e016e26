import ipaddr from 'ipaddr.js';
import { type Address, InvalidCidrError, isInside, type Network, parseNetwork } from './networks.ts';

/** Behind them a gateway (NAT64, RFC 6052 and 8215) reaches the IPv4 address that stands in the address. */
export const NAT64_NETWORKS: readonly Network[] = ['64:ff9b::/96', '64:ff9b:1::/48'].map(parseNetwork);

const NAT64_PREFIX_BITS = new Set([32, 40, 48, 56, 64, 96]);

export function parseNat64Prefix(cidr: string): Network {
  const network = parseNetwork(cidr);
  if (network[0].kind() !== 'ipv6' || !NAT64_PREFIX_BITS.has(network[1])) throw new InvalidCidrError(cidr);
  return network;
}

/** The IPv4 address follows the prefix, but for the bits 64 to 71, which are zero (RFC 6052 §2.2). */
export function behindNat64(address: Address, networks: readonly Network[] = NAT64_NETWORKS): Address | null {
  const found = networks.find((network) => isInside(address, [network]));
  if (found === undefined) return null;
  const [, prefixBits] = found;
  const bytes = address.toByteArray();
  // The prefix of RFC 8215 is a range of prefixes of 96 bits.
  const isWhole = prefixBits === 96 || NAT64_NETWORKS.includes(found);
  if (isWhole) return new ipaddr.IPv4(bytes.slice(-4));
  bytes.splice(8, 1);
  return new ipaddr.IPv4(bytes.slice(prefixBits / 8, prefixBits / 8 + 4));
}
