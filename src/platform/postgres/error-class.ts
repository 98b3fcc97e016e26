/**
 * SQLSTATE classes that say nothing about the data: connection (08), transaction rollback (40), resources (53),
 * operator intervention (57), system (58), read-only standby (25006), lock not available (55P03).
 */
const TRANSIENT_CLASSES = new Set(['08', '40', '53', '57', '58']);
const TRANSIENT_STATES = new Set(['25006', '25P03', '25P04', '55P03']);
const NETWORK_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
]);

/** Whether the same statement may succeed later: the database is away or busy, the data are not at fault. */
export function isTransientError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : null;
  if (code === null) return isConnectionMessage(error.message);
  if (/^[0-9A-Z]{5}$/.test(code))
    return TRANSIENT_CLASSES.has(code.slice(0, 2)) || TRANSIENT_STATES.has(code);
  return NETWORK_CODES.has(code);
}

export function isLockTimeout(error: unknown): boolean {
  return hasState(error, '55P03');
}

export function isCanceled(error: unknown): boolean {
  return hasState(error, '57014');
}

export function isCheckViolation(error: unknown): boolean {
  return hasState(error, '23514');
}

export function isUniqueViolation(error: unknown): boolean {
  return hasState(error, '23505');
}

export function isUndefinedTable(error: unknown): boolean {
  return hasState(error, '42P01');
}

function hasState(error: unknown, state: string): boolean {
  return error instanceof Error && 'code' in error && error.code === state;
}

/** Integrity (23) and contents (22) of data, a limit of the server's that they exceed (54000), refused by a trigger. */
const DATA_CLASSES = new Set(['22', '23']);
const DATA_STATES = new Set(['54000', 'P0001']);

/**
 * Whether what was to be stored is at fault, so that leaving it out lets the rest go on. Only what is known to say so
 * does: a missing table, a revoked grant, a damaged index would fail for everything, and nothing may be given up for it.
 * A mistake of ours in JavaScript is met by some data and not by others.
 */
export function isDataError(error: unknown): boolean {
  if (!(error instanceof Error)) return true;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : null;
  if (code === null) return !isConnectionMessage(error.message);
  if (/^[0-9A-Z]{5}$/.test(code) && /\d/.test(code)) {
    return DATA_CLASSES.has(code.slice(0, 2)) || DATA_STATES.has(code);
  }
  const isSystemCall = /^E[A-Z0-9]+$/.test(code);
  return !isSystemCall;
}

/** The driver and the pool report some lost connections without a code. */
function isConnectionMessage(message: string): boolean {
  return /connection|trying to connect|terminated|not queryable|Query read timeout/i.test(message);
}
