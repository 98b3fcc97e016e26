/** The store cannot be used now: it is away, hangs, is full or refuses our credentials. Try again later. */
export class ObjectStoreUnavailable extends Error {
  constructor(reason: string, cause?: unknown) {
    super(`The object store is not available: ${reason}`, { cause });
    this.name = 'ObjectStoreUnavailable';
  }
}

export class ObjectMissing extends Error {
  constructor(key: string) {
    super(`The object store has no object ${key}`);
    this.name = 'ObjectMissing';
  }
}

const MISSING_CODES = new Set(['NoSuchKey', 'NotFound']);

/** Turns what the client library throws into one of our two errors; both pass unchanged. */
export function objectStoreError(error: unknown, key: string): ObjectStoreUnavailable | ObjectMissing {
  if (error instanceof ObjectStoreUnavailable || error instanceof ObjectMissing) return error;
  if (MISSING_CODES.has(storeCode(error))) return new ObjectMissing(key);
  return new ObjectStoreUnavailable(reasonOf(error), error);
}

/** Whether the bucket itself is gone, as after the store was wiped. */
export function isBucketMissing(error: unknown): boolean {
  return storeCode(error) === 'NoSuchBucket';
}

/** What the store itself said; empty for what is not its answer. By name: the library need not be loaded for it. */
function storeCode(error: unknown): string {
  const isAnswer = error instanceof Error && error.name === 'S3Error' && 'code' in error;
  return isAnswer ? String(error.code) : '';
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown failure';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : null;
  if (error.message === '') return code ?? error.name;
  return code === null || error.message.includes(code) ? error.message : `${code}: ${error.message}`;
}
