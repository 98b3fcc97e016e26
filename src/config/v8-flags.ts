/**
 * How API and worker are run: `node <flags> src/main.ts …`. V8 grows its heap generously where memory is plentiful;
 * these make it collect earlier, which under flood halves what the two processes take, for a few percent of CPU.
 * No hard limit: a large upstream body must not end a process.
 */
export const V8_FLAGS: readonly string[] = ['--heap-growing-percent=40', '--max-semi-space-size=4'];
