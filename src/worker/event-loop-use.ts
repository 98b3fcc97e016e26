/** Tells which share of the last second or so this process's event loop was busy, from 0 to 1. */
export function watchEventLoop(windowMs = 1_000): () => number {
  let before = performance.eventLoopUtilization();
  let atMs = performance.now();
  let utilization = 0;
  return () => {
    const nowMs = performance.now();
    if (nowMs - atMs >= windowMs) {
      const now = performance.eventLoopUtilization();
      utilization = performance.eventLoopUtilization(now, before).utilization;
      before = now;
      atMs = nowMs;
    }
    return utilization;
  };
}
