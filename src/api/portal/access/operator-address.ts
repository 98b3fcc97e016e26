import { BlockList, isIPv6 } from 'node:net';
import type { FastifyRequest } from 'fastify';
import type { Config } from '../../../platform/config/config.ts';

type Settings = Pick<Config['portal'], 'operatorCidrs' | 'operatorListen'>;

/** Whether a request comes by the port and from the networks that operators' pages, or the platform API, are limited to. */
export function operatorAddress(
  { operatorCidrs, operatorListen }: Settings,
  isOperatorListener: boolean,
): (request: Pick<FastifyRequest, 'ip'>) => boolean {
  const isPort = operatorListen === '' || isOperatorListener;
  if (!isPort || operatorCidrs.length === 0) return () => isPort;
  const networks = new BlockList();
  for (const cidr of operatorCidrs) {
    const [address = '', bits = ''] = cidr.split('/');
    networks.addSubnet(address, Number(bits), familyOf(address));
  }
  return ({ ip }) => networks.check(ip, familyOf(ip));
}

/** An address such as ::ffff:10.1.2.3 is found in a network of IPv4 too. */
function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIPv6(address) ? 'ipv6' : 'ipv4';
}
