import ipaddr from 'ipaddr.js';

const NETWORK_WORDS = 4;

/** What attempts are counted by: an IPv4 address, or the /64 network that one IPv6 customer has to himself. */
export function countedAddress(ip: string): string {
  if (!ipaddr.isValid(ip)) return ip.slice(0, 64);
  const address = ipaddr.process(ip);
  if (address.kind() === 'ipv4') return address.toString();
  return `${(address as ipaddr.IPv6).parts
    .slice(0, NETWORK_WORDS)
    .map((word) => word.toString(16))
    .join(':')}::/64`;
}
