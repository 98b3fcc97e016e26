import { fileURLToPath } from 'node:url';

/**
 * How API and worker are run: `node <flags> src/main.ts …`. V8 grows its heap generously where memory is plentiful;
 * these make it collect earlier. Collecting the whole heap slows a process down for a tenth of a second: with a growth
 * of 40 % it happens every two seconds at 800 webhooks per second, which shows at the 95th percentile. A young
 * generation of 4 MiB would save 30 MiB and costs half as much again in latency.
 * No hard limit: a large upstream body must not end a process.
 */
export const V8_FLAGS: readonly string[] = ['--heap-growing-percent=80', '--max-semi-space-size=8'];

/** Removes the types of the sources once and not at every start. */
const TYPE_STRIPPING = fileURLToPath(new URL('../../../bin/stripped-types.js', import.meta.url));

export const NODE_FLAGS: readonly string[] = [...V8_FLAGS, '--import', TYPE_STRIPPING];

/** Their environment besides settings. One arena of the C library, in place of one per thread, saves 40 MiB. */
export const PROCESS_ENVIRONMENT: Readonly<Record<string, string>> = { MALLOC_ARENA_MAX: '1' };
