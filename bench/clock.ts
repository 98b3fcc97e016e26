/** Milliseconds of the system's monotonic clock: the same clock in every process and thread of this machine. */
export function nowMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1e6;
}
