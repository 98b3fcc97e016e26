import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createSecretKey,
  type KeyObject,
  randomBytes,
} from 'node:crypto';

/** A key of 32 bytes and the id that sealed texts name it by. */
export type EncryptionKey = { id: string; key: Uint8Array };

/** Why a secret could not be sealed or opened. Neither message nor code holds any part of a secret or key. */
export class SecretBoxError extends Error {
  readonly code: 'bad_keys' | 'bad_format' | 'unknown_key' | 'not_authentic';
  constructor(code: SecretBoxError['code'], message: string) {
    super(message);
    this.name = 'SecretBoxError';
    this.code = code;
  }
}

export type SecretBox = {
  /** Of the keys that open; the first seals. */
  readonly keyIds: readonly string[];
  /** Returns `v1:keyId:nonce:ciphertext:tag`, parts in base64url, made with the first key. */
  seal(plain: string, associatedData: string): string;
  /** Opens a sealed text; throws SecretBoxError when it was changed, moved to another row or made with an unknown key. */
  open(sealed: string, associatedData: string): string;
};

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const ID_OF_A_BARE_KEY = 'k1';
const KEY_ID = /^[A-Za-z0-9_-]{1,64}$/;
const SEALED = /^v1:([A-Za-z0-9_-]{1,64}):([A-Za-z0-9_-]{16}):([A-Za-z0-9_-]*):([A-Za-z0-9_-]{22})$/;

/**
 * A box over AES-256-GCM: the first key encrypts, all decrypt. `associatedData` names the place of the secret (table,
 * column, row), so that a sealed text copied to another row does not open. Throws SecretBoxError `bad_keys`.
 */
export function makeSecretBox(keys: readonly EncryptionKey[]): SecretBox {
  const [current] = keys;
  if (current === undefined) throw new SecretBoxError('bad_keys', 'There is no encryption key.');
  if (new Set(keys.map(({ id }) => id)).size !== keys.length)
    throw new SecretBoxError('bad_keys', 'Two encryption keys have one id.');
  for (const { id, key } of keys) {
    if (!KEY_ID.test(id)) throw new SecretBoxError('bad_keys', 'An encryption key has a malformed id.');
    if (key.length !== KEY_BYTES)
      throw new SecretBoxError('bad_keys', `Encryption key ${id} is not 32 bytes long.`);
  }
  // Made once: for bytes Node.js makes a key at each use, which takes longer than sealing with it.
  const keyById = new Map(keys.map(({ id, key }) => [id, createSecretKey(key)]));
  const sealing = { id: current.id, key: createSecretKey(current.key) };
  return {
    keyIds: keys.map(({ id }) => id),
    seal: (plain, associatedData) => seal(sealing, plain, associatedData),
    open: (sealed, associatedData) => open(keyById, sealed, associatedData),
  };
}

/**
 * Reads `id:base64 of 32 bytes`, separated by commas, the first being the one that encrypts. One without an id, as hosting
 * platforms generate them, has the id `k1`.
 * Throws SecretBoxError `bad_keys`, which tells the position of the wrong entry and not its text.
 */
export function parseEncryptionKeys(text: string): EncryptionKey[] {
  const entries = text.split(',').map((entry) => entry.trim());
  const keys = entries.map((entry, index) => {
    const separator = entry.indexOf(':');
    const id = separator < 0 ? ID_OF_A_BARE_KEY : entry.slice(0, separator);
    const encoded = entry.slice(separator + 1);
    const key = Buffer.from(encoded, 'base64');
    if (!KEY_ID.test(id) || key.length !== KEY_BYTES || key.toString('base64') !== encoded) {
      throw new SecretBoxError('bad_keys', `Encryption key ${index + 1} is not id:base64 of 32 bytes.`);
    }
    return { id, key };
  });
  if (new Set(keys.map(({ id }) => id)).size !== keys.length) {
    throw new SecretBoxError('bad_keys', 'Two encryption keys have one id.');
  }
  return keys;
}

function seal({ id, key }: { id: string; key: KeyObject }, plain: string, associatedData: string): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(associatedData, 'utf8'));
  const ciphertext = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()]);
  const parts = [nonce, ciphertext, cipher.getAuthTag()].map((part) => part.toString('base64url'));
  return ['v1', id, ...parts].join(':');
}

function open(keyById: ReadonlyMap<string, KeyObject>, sealed: string, associatedData: string): string {
  const [, keyId, nonce, ciphertext, tag] = SEALED.exec(sealed) ?? [];
  if (keyId === undefined || nonce === undefined || ciphertext === undefined || tag === undefined) {
    throw new SecretBoxError('bad_format', 'The sealed secret has the wrong form.');
  }
  const key = keyById.get(keyId);
  if (key === undefined) throw new SecretBoxError('unknown_key', `There is no encryption key ${keyId}.`);
  const decipher = createDecipheriv(CIPHER, key, Buffer.from(nonce, 'base64url'), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(Buffer.from(associatedData, 'utf8'));
  decipher.setAuthTag(Buffer.from(tag, 'base64url'));
  const head = decipher.update(Buffer.from(ciphertext, 'base64url'));
  try {
    return Buffer.concat([head, decipher.final()]).toString('utf8');
  } catch {
    throw new SecretBoxError('not_authentic', 'The sealed secret was changed or belongs to another row.');
  }
}

/** What a sealed text holds; null when its key is missing, or is not the one that had its id: an operator can put it back. */
export function openOrNull(secretBox: SecretBox, sealed: string, associatedData: string): string | null {
  try {
    return secretBox.open(sealed, associatedData);
  } catch (error) {
    if (error instanceof SecretBoxError) return null;
    throw error;
  }
}

const TOKEN_BYTES = 32;
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

/** 256 random bits as 43 characters that may stand in cookies and links. */
export function newSecretToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url');
}

/** SHA-256 of a token, by which it is stored; null for a text that can be none. */
export function secretTokenHash(token: string): Buffer | null {
  return TOKEN.test(token) ? createHash('sha256').update(token).digest() : null;
}
