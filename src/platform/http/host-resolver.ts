import { lookup, Resolver } from 'node:dns/promises';

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
