import type { Config } from './config.ts';

/** What an operator should know of settings that are valid and hardly meant. Holds no secret. */
export function configWarnings({ mode, api }: Pick<Config, 'mode' | 'api'>): string[] {
  const warnings: string[] = [];
  const host = new URL(api.publicUrl).hostname;
  if (mode === 'development' && !isLoopback(host)) {
    warnings.push(
      `HELIOGRAPH_MODE is development and HELIOGRAPH_PUBLIC_URL names ${host}: http endpoints, http identity providers and the sandbox are allowed; set it to production for an installation`,
    );
  }
  const warning = proxyWarning({ mode, api });
  return warning === null ? warnings : [...warnings, warning];
}

/** Whether a proxy must be there whose word about clients does not count. */
export function proxyWarning({ mode, api }: Pick<Config, 'mode' | 'api'>): string | null {
  if (mode === 'development' || api.httpsPort >= 0 || api.trustProxy.length > 0) return null;
  return (
    'HELIOGRAPH_TRUST_PROXY is empty and no https port is open, so a reverse proxy ends TLS and every client seems to ' +
    'have its address: limits of sign-in count for all together, logs show the proxy; set it to the address of the proxy'
  );
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host);
}
