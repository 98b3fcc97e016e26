/** npm passes a terminal's Ctrl-C on, so that one key press arrives twice. */
const SAME_KEY_PRESS_MS = 500;

/** Calls back at the first signal to stop and at the next one; returns the function that ends this. */
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
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const signal of signals) process.on(signal, listener);
  return () => {
    for (const signal of signals) process.off(signal, listener);
  };
}
