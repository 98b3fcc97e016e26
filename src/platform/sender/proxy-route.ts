import type { EgressProxy } from '../http/egress-proxy-url.ts';
import { lookAtProxy } from './proxy-tunnel.ts';

export type ProxyRoute = {
  proxy: EgressProxy;
  /** Looks whether it works, once for all that ask at the same time; what was found a moment ago is said again. */
  look(): Promise<boolean>;
  /** What is wrong with it as far as is known; null: nothing. While a look is without an answer, that counts too. */
  trouble(): string | null;
};

/** A look is over by then, which is before the request that caused it is given up. */
export const LOOK_WITHIN_MS = 700;
const FRESH_MS = 500;
const AGAIN_MS = 1_000;

/**
 * Keeps watch over the proxy. It looks only when a request gives a reason to, and then each second until the proxy
 * works again. `onDown` and `onUp` are called when that changes.
 */
export function makeProxyRoute(
  proxy: EgressProxy,
  { onDown, onUp }: { onDown?: (trouble: string) => void; onUp?: () => void } = {},
): ProxyRoute {
  let trouble: string | null = null;
  let seenMs = Number.NEGATIVE_INFINITY;
  let looking: Promise<boolean> | null = null;

  const look = async (): Promise<boolean> => {
    const found = (await lookAtProxy(proxy, LOOK_WITHIN_MS)).trouble;
    const before = trouble;
    trouble = found;
    seenMs = performance.now();
    if (found !== null) {
      if (before === null) onDown?.(found);
      // Nothing has to be kept alive for it.
      setTimeout(() => void route.look(), AGAIN_MS).unref();
    } else if (before !== null) onUp?.();
    return found === null;
  };

  const route: ProxyRoute = {
    proxy,
    trouble: () => trouble,
    look: () => {
      if (looking !== null) return looking;
      if (performance.now() - seenMs < FRESH_MS) return Promise.resolve(trouble === null);
      looking = look().finally(() => {
        looking = null;
      });
      return looking;
    },
  };
  return route;
}
