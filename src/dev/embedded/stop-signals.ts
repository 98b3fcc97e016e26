/** npm passes a terminal's Ctrl-C on, so that one key press arrives twice. */
const SAME_KEY_PRESS_MS = 500;

const PARENT_CHECK_INTERVAL_MS = 500;

/**
 * Calls back at the first signal to stop and at the next one; returns the function that ends this.
 * The end of the shell in which npm runs a script counts as a signal: npm passes SIGTERM to that shell, which
 * dies of it without telling us.
 */
export function onStopSignals(handlers: { onFirst: () => void; onSecond: () => void }): () => void {
  let firstAt: number | undefined;
  const listener = (): void => {
    if (firstAt === undefined) {
      firstAt = performance.now();
      handlers.onFirst();
    } else if (performance.now() - firstAt > SAME_KEY_PRESS_MS) {
      handlers.onSecond();
    }
  };
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (isNpmScript() && process.ppid !== parent && firstAt === undefined) listener();
  }, PARENT_CHECK_INTERVAL_MS);
  watch.unref();
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const signal of signals) process.on(signal, listener);
  return () => {
    clearInterval(watch);
    for (const signal of signals) process.off(signal, listener);
  };
}

function isNpmScript(): boolean {
  return process.env.npm_lifecycle_event !== undefined;
}
