/**
 * How API and worker are run: `node <flags> src/main.ts …`. V8 grows its heap generously where memory is plentiful;
 * these make it collect earlier: under flood the two processes take about 490 MiB instead of 630. A young generation of
 * 4 MiB would save another 70, but doubles the median latency at 800 webhooks per second.
 * No hard limit: a large upstream body must not end a process.
 */
export const V8_FLAGS: readonly string[] = ['--heap-growing-percent=40', '--max-semi-space-size=16'];
