/** A signal that is aborted after a time or with another signal. */
export type LinkedAbort = {
  signal: AbortSignal;
  /** Whether the time was over. */
  isLate(): boolean;
  /** Begins the time again. */
  refresh(): void;
  /** Must be called when the signal is no longer needed. */
  release(): void;
};

/**
 * As `AbortSignal.any` with a time limit. That one is lost to the garbage collector in Node.js 20 while a request waits,
 * which then waits for ever.
 */
export function linkedAbort(parent: AbortSignal, timeoutMs: number): LinkedAbort {
  const controller = new AbortController();
  let isLate = false;
  const onParent = (): void => controller.abort();
  const timer = setTimeout(() => {
    isLate = true;
    controller.abort(new DOMException('no response in time', 'TimeoutError'));
  }, timeoutMs);
  if (parent.aborted) onParent();
  parent.addEventListener('abort', onParent);
  return {
    signal: controller.signal,
    isLate: () => isLate,
    refresh: () => void timer.refresh(),
    release(): void {
      clearTimeout(timer);
      parent.removeEventListener('abort', onParent);
    },
  };
}
