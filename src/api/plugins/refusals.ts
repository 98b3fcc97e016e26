import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from 'fastify';
import { apiKeyHints, isApiKey, isPlatformKey } from '../../features/keys/api-key.ts';
import { type AuditEntry, recordAudit } from '../../platform/audit/audit.ts';
import { countedAddress } from '../../platform/http/counted-address.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { ApiError } from '../errors/api-error.ts';
import type { ErrorCode } from '../errors/error-codes.ts';

const ACTIONS: Partial<Record<ErrorCode, string>> = {
  invalid_api_key: 'api_key.refused',
  expired_api_key: 'api_key.refused',
  insufficient_scope: 'api_key.refused',
  ip_not_allowed: 'api_key.refused',
  invalid_signature: 'upstream_signature.refused',
  verification_failed: 'upstream_handshake.refused',
};

const FLUSH_MS = 60_000;
/** Sources that are counted apart within a minute; what comes of others is counted together. */
const MAX_SOURCES = 1_000;
/** Entries of a minute, and lines, per process: however many ask, neither is flooded. */
const MAX_ENTRIES = 20;
const MAX_LINES = 60;

type Refused = Pick<AuditEntry, 'wabaId' | 'action' | 'target'> & {
  code: string;
  address: string | null;
  count: number;
};

const OTHERS = 'other sources';

/**
 * Counts refused keys and signatures, by address and key: each minute the audit log gets an entry for the sources with
 * the most and one for all others. The first of each source in a minute is a line of the log, marked `security`.
 */
export function noteRefusals(app: FastifyInstance, database: Database): void {
  const refusals = makeRefusals(database, app.log);
  app.addHook('onError', (request, _reply, error, done) => {
    refusals.note(request, error);
    done();
  });
  const timer = setInterval(() => void refusals.flush(), FLUSH_MS).unref();
  app.addHook('onClose', async () => {
    clearInterval(timer);
    await refusals.flush();
  });
}

function makeRefusals(database: Database, log: FastifyBaseLogger) {
  let sources = new Map<string, Refused>();
  let lines = 0;

  const note = (request: FastifyRequest, error: unknown): void => {
    const refused = refusedOf(request, error);
    if (refused === null) return;
    const key = Object.values(refused).join(' ');
    const known = sources.get(sources.size < MAX_SOURCES || sources.has(key) ? key : OTHERS);
    if (known !== undefined) {
      known.count += 1;
      return;
    }
    const isKnownSource = sources.size < MAX_SOURCES;
    sources.set(isKnownSource ? key : OTHERS, { ...(isKnownSource ? refused : othersOf([])), count: 1 });
    lines += 1;
    if (lines > MAX_LINES) return;
    const { wabaId, ...about } = refused;
    log.info({ security: true, ...about, requestId: request.id }, 'a request was refused');
  };

  const flush = async (): Promise<void> => {
    const all = [...sources.values()].sort((a, b) => b.count - a.count);
    sources = new Map();
    lines = 0;
    const rest = all.slice(MAX_ENTRIES);
    const told = [...all.slice(0, MAX_ENTRIES), ...(rest.length === 0 ? [] : [othersOf(rest)])];
    try {
      for (const refused of told) await record(database, refused);
    } catch (error) {
      log.warn({ err: error, security: true, sources: told.length }, 'refusals are not in the audit log');
    }
  };
  return { note, flush };
}

function refusedOf(request: FastifyRequest, error: unknown): Omit<Refused, 'count'> | null {
  const code = error instanceof ApiError ? error.code : null;
  const action = code === null ? undefined : ACTIONS[code];
  if (code === null || action === undefined) return null;
  const { refusedKey = null } = request;
  const token = request.headers.authorization?.split(' ').at(-1);
  const prefix = isApiKey(token) || isPlatformKey(token) ? apiKeyHints(token).prefix : null;
  const key = refusedKey === null ? (prefix ?? 'no key') : `${refusedKey.name} (${prefix})`;
  return {
    wabaId: refusedKey?.wabaId ?? null,
    action,
    code,
    address: countedAddress(request.ip),
    target: action === 'api_key.refused' ? key : 'upstream webhook',
  };
}

function othersOf(rest: readonly Refused[]): Refused {
  const count = rest.reduce((sum, one) => sum + one.count, 0);
  return { wabaId: null, action: 'requests.refused', target: OTHERS, code: 'various', address: null, count };
}

async function record(
  database: Database,
  { wabaId, action, target, code, address, count }: Refused,
): Promise<void> {
  await recordAudit(database, {
    tenantId: null,
    wabaId,
    action,
    target,
    requestId: null,
    ip: address,
    actor: address ?? OTHERS,
    detail: { reason: code, count },
  });
}
