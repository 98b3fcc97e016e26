import { ENDPOINT_SECRET, ENDPOINT_SIGNING_KEY } from '../../engine/endpoint/endpoint-secrets.ts';
import { findEndpointSecret, lockEndpoint, replaceEndpointSecret } from '../../engine/endpoint/store.ts';
import {
  isWebhookSecret,
  newSigningKey,
  newWebhookSecret,
  publicKeyOf,
} from '../../engine/endpoint/webhook-signature.ts';
import { type Audited, recordChange } from '../../platform/audit/audit.ts';
import type { SealedDatabase } from '../../platform/crypto/sealed-database.ts';
import { checkRowId, invalidValue, RequestError } from '../../platform/request-input.ts';
import { endpointName, knownEndpoint, unknownEndpoint } from './endpoints.ts';

const DEFAULT_OVERLAP_HOURS = 24;
const MAX_OVERLAP_HOURS = 168;

export type Rotation = {
  overlapHours?: number;
  secret?: string;
};

/** `secret` is shown this once. `previousSecretExpiresAt` null: the secret before has ended already. */
export type RotatedSecret = { id: string; secret: string; previousSecretExpiresAt: Date | null };

/**
 * During the overlap webhooks carry the signatures of both secrets, so that the tenant can change over in its own time; a second rotation
 * within the overlap ends the oldest at once. Throws RequestError: `invalid_value`, `unknown_endpoint`, `secret_in_use`; and
 * SecretBoxError.
 */
export async function rotateSecret(
  { database, secretBox, actor }: SealedDatabase & Audited,
  wabaId: string,
  endpointId: string,
  { overlapHours = DEFAULT_OVERLAP_HOURS, secret = newWebhookSecret() }: Rotation,
): Promise<RotatedSecret> {
  const id = checkRowId('The id of the endpoint', endpointId);
  checkOverlap(overlapHours);
  if (!isWebhookSecret(secret)) {
    throw invalidValue('The secret must be whsec_ and the base64 of 24 to 64 random bytes.', 'secret');
  }
  const place = ENDPOINT_SECRET.place(id);
  return await database.transaction(async (trx) => {
    await lockEndpoint(trx, wabaId, id);
    const present = await findEndpointSecret(trx, wabaId, id);
    if (present === null) throw unknownEndpoint(id);
    // A repeated request must not end the secret that the first one kept for the overlap.
    if (secretBox.open(present, place) === secret) {
      throw new RequestError('secret_in_use', `Endpoint ${id} has this secret already; nothing was changed.`);
    }
    const change = { id, sealed: secretBox.seal(secret, place), overlapHours };
    const previousSecretExpiresAt = await replaceEndpointSecret(trx, wabaId, 'secret', change);
    const target = endpointName(id);
    const detail = { overlapHours };
    await recordChange(trx, actor, { wabaId, action: 'endpoint.secret_rotated', target, detail });
    return { id, secret, previousSecretExpiresAt };
  });
}

/** `publicKey` verifies what the new private key signs. `previousKeyExpiresAt` null: the key before has ended already. */
export type RotatedSigningKey = { id: string; publicKey: string; previousKeyExpiresAt: Date | null };

/** During the overlap webhooks carry the signatures of both keys. Throws RequestError: `invalid_value`, `unknown_endpoint`, `no_signing_key`. */
export async function rotateSigningKey(
  { database, secretBox, actor }: SealedDatabase & Audited,
  wabaId: string,
  endpointId: string,
  { overlapHours = DEFAULT_OVERLAP_HOURS }: Pick<Rotation, 'overlapHours'>,
): Promise<RotatedSigningKey> {
  const id = checkRowId('The id of the endpoint', endpointId);
  checkOverlap(overlapHours);
  const signingKey = newSigningKey();
  return await database.transaction(async (trx) => {
    await lockEndpoint(trx, wabaId, id);
    if ((await knownEndpoint(trx, wabaId, id)).asymmetricSignature === 'none') {
      const message = `Endpoint ${id} signs with no private key: set asymmetricSignature to ed25519 first.`;
      throw new RequestError('no_signing_key', message);
    }
    const sealed = secretBox.seal(signingKey, ENDPOINT_SIGNING_KEY.place(id));
    const change = { id, sealed, overlapHours };
    const previousKeyExpiresAt = await replaceEndpointSecret(trx, wabaId, 'signing_key', change);
    const publicKey = publicKeyOf(signingKey);
    const target = endpointName(id);
    const detail = { overlapHours, publicKey };
    await recordChange(trx, actor, { wabaId, action: 'endpoint.signing_key_rotated', target, detail });
    return { id, publicKey, previousKeyExpiresAt };
  });
}

function checkOverlap(hours: number): void {
  if (Number.isFinite(hours) && hours >= 0 && hours <= MAX_OVERLAP_HOURS) return;
  throw invalidValue(`The overlap must be 0 to ${MAX_OVERLAP_HOURS} hours.`);
}
