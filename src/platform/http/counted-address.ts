import ipaddr from 'ipaddr.js';

const NETWORK_WORDS = 4;

/** Of the addresses that were asked for last: the upstream platform uses few. */
const known = new Map<string, string>();
const MAX_KNOWN = 1_000;

/** What attempts are counted by: an IPv4 address, or the /64 network of an IPv6 customer. */
export function countedAddress(ip: string): string {
  const earlier = known.get(ip);
  if (earlier !== undefined) return earlier;
  if (known.size >= MAX_KNOWN) known.clear();
  const counted = networkOf(ip);
  known.set(ip, counted);
  return counted;
}

function networkOf(ip: string): string {
  if (!ipaddr.isValid(ip)) return ip.slice(0, 64);
  const address = ipaddr.process(ip);
  if (address.kind() === 'ipv4') return address.toString();
  return `${(address as ipaddr.IPv6).parts
    .slice(0, NETWORK_WORDS)
    .map((word) => word.toString(16))
    .join(':')}::/64`;
}
