import { InvalidProxyError, parseEgressProxy } from '../http/egress-proxy-url.ts';
import { makeAddressGuard } from '../http/outbound-url.ts';
import type { SettingName } from './settings.ts';

export function webhookProblems(list: (name: SettingName) => string[]): string[] {
  const schedule = list('HELIOGRAPH_WEBHOOK_RETRY_SCHEDULE_SECONDS');
  const ports = list('HELIOGRAPH_WEBHOOK_PORTS');
  const problems: string[] = [];
  if (schedule.length > 50 || schedule.some((seconds) => !/^\d{1,6}$/.test(seconds)))
    problems.push('HELIOGRAPH_WEBHOOK_RETRY_SCHEDULE_SECONDS must be up to 50 whole numbers of seconds');
  if (ports.length === 0 || !ports.every(isPort))
    problems.push('HELIOGRAPH_WEBHOOK_PORTS must be whole numbers from 1 to 65535, separated by commas');
  for (const entry of list('HELIOGRAPH_WEBHOOK_DENY')) {
    const wrong = 'has an entry that is no name, address or network, with or without a port';
    if (!isUsable({ deny: [entry] }))
      problems.push(`HELIOGRAPH_WEBHOOK_DENY ${wrong}: ${JSON.stringify(entry)}`);
  }
  if (!isUsable({ nat64Prefixes: list('HELIOGRAPH_WEBHOOK_NAT_PREFIXES') }))
    problems.push('HELIOGRAPH_WEBHOOK_NAT_PREFIXES must be IPv6 networks of 32, 40, 48, 56, 64 or 96 bits');
  return problems;
}

/** What is wrong with the URL of the proxy, without anything of it: it may hold a password. */
export function webhookProxyProblems(url: string): string[] {
  try {
    parseEgressProxy(url);
    return [];
  } catch (error) {
    if (!(error instanceof InvalidProxyError)) throw error;
    return [`HELIOGRAPH_WEBHOOK_PROXY ${error.message}`];
  }
}

function isPort(text: string): boolean {
  return /^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535;
}

function isUsable(rules: { deny?: string[]; nat64Prefixes?: string[] }): boolean {
  try {
    makeAddressGuard({ allowCidrs: [], ...rules });
    return true;
  } catch {
    return false;
  }
}
