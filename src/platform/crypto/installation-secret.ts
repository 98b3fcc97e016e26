import { createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { execute, query } from '../postgres/sql.ts';
import type { SealedDatabase } from './sealed-database.ts';
import { sealedSecret } from './sealed-secret.ts';
import { SecretBoxError } from './secret-box.ts';

export const INSTALLATION_SECRET = sealedSecret({
  table: 'installation_secrets',
  id: ['name', 'text'],
  secret: 'secret',
});

const NAME = 'derivation';
const SECRET_BYTES = 32;
const KEY_BYTES = 32;

/** What keys are derived for: none tells anything about another. */
type Purpose = 'event id hash' | 'media urls' | 'set-up dialogs' | 'set-up links';

/**
 * A key of the installation that stays the same when encryption keys change: derived from a random secret in the
 * database, which the encryption keys seal. The first process that needs the secret makes it. Throws SecretBoxError when
 * it cannot be opened.
 */
async function installationKey(tools: SealedDatabase, purpose: Purpose): Promise<Buffer> {
  const secret = (await readSecret(tools)) ?? (await makeSecret(tools));
  return Buffer.from(hkdfSync('sha256', secret, '', `heliograph ${purpose}`, KEY_BYTES));
}

async function readSecret({ database, secretBox }: SealedDatabase): Promise<Buffer | null> {
  const rows = await query<{ sealed: string }>(
    database,
    'select secret_sealed as sealed from installation_secrets where name = :name',
    { name: NAME },
  );
  const [row] = rows;
  if (row === undefined) return null;
  return Buffer.from(secretBox.open(row.sealed, INSTALLATION_SECRET.place(NAME)), 'base64');
}

/** Of several processes that make one at the same time, the first prevails. */
async function makeSecret(tools: SealedDatabase): Promise<Buffer> {
  const plain = randomBytes(SECRET_BYTES).toString('base64');
  await execute(
    tools.database,
    'insert into installation_secrets (name, secret_sealed) values (:name, :sealed) on conflict do nothing',
    { name: NAME, sealed: tools.secretBox.seal(plain, INSTALLATION_SECRET.place(NAME)) },
  );
  const secret = await readSecret(tools);
  if (secret === null) throw new Error('the installation secret was deleted while it was made');
  return secret;
}

/** The key for a purpose, read when it is first needed; what failed is tried again the next time. */
export function lazyInstallationKey(tools: SealedDatabase, purpose: Purpose): () => Promise<Buffer> {
  let loaded: Promise<Buffer> | null = null;
  return async () => {
    loaded ??= installationKey(tools, purpose);
    try {
      return await loaded;
    } catch (error) {
      loaded = null;
      throw error;
    }
  };
}

/** Turns an eventId into what Temporal may know of it. */
export type EventIdHash = (eventId: string) => Promise<string | null>;

/** Test events are numbered by ourselves: no customer's number is in their ids. */
const OWN_EVENT_ID = /^test_\d+$/;

const HASH_HEX_DIGITS = 32;

/**
 * The hash by which Temporal finds an eventId, which itself often holds a customer's phone number: keyed, so that a person who
 * sees Temporal cannot try all numbers. Null while the secret cannot be opened: a workflow must start without it then.
 */
export function openEventIdHash(tools: SealedDatabase): EventIdHash {
  const key = lazyInstallationKey(tools, 'event id hash');
  return async (eventId) => {
    if (OWN_EVENT_ID.test(eventId)) return eventId;
    try {
      const mac = createHmac('sha256', await key()).update(eventId);
      return mac.digest('hex').slice(0, HASH_HEX_DIGITS);
    } catch (error) {
      if (error instanceof SecretBoxError) return null;
      throw error;
    }
  };
}

/** For processes that start workflows of test events only, and have no secrets for others. */
export const ownEventIdsOnly: EventIdHash = async (eventId) => (OWN_EVENT_ID.test(eventId) ? eventId : null);
