import { createRequire } from 'node:module';

/**
 * The MinIO library in its CommonJS form. As an ES module it reads the CommonJS libraries under it twice and keeps both
 * texts, and its own source maps: some 4 MiB of memory per process.
 */
const library = createRequire(import.meta.url)('minio') as typeof import('minio');

export const { Client } = library;
