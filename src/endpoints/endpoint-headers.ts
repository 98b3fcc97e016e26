import { invalidValue } from '../platform/account-error.ts';
import { type SecretBox, SecretBoxError } from '../platform/crypto/secret-box.ts';
import { endpointHeadersPlace } from '../platform/crypto/secret-places.ts';
import { changeCustomHeaders } from './custom-headers.ts';

type StoredHeaders = { id: string; customHeadersSealed: string | null };

/**
 * An endpoint's headers after a change, sealed as one JSON object; null when none are left.
 * Throws AccountError `invalid_value`, and SecretBoxError when the present ones cannot be opened.
 */
export function changeSealedHeaders(
  secretBox: SecretBox,
  { id, customHeadersSealed }: StoredHeaders,
  change: Readonly<Record<string, string | null>> | null,
): string | null {
  if (change === null) return null;
  const verdict = changeCustomHeaders(open(secretBox, { id, customHeadersSealed }), change);
  if (!verdict.ok) throw invalidValue(verdict.message, 'customHeaders');
  if (Object.keys(verdict.headers).length === 0) return null;
  return secretBox.seal(JSON.stringify(verdict.headers), endpointHeadersPlace(id));
}

/** The names of an endpoint's headers; null when they were sealed with a key that is not there any more. */
export function customHeaderNames(secretBox: SecretBox, endpoint: StoredHeaders): string[] | null {
  try {
    return Object.keys(open(secretBox, endpoint));
  } catch (error) {
    if (error instanceof SecretBoxError) return null;
    throw error;
  }
}

function open(secretBox: SecretBox, { id, customHeadersSealed }: StoredHeaders): Record<string, string> {
  if (customHeadersSealed === null) return {};
  return JSON.parse(secretBox.open(customHeadersSealed, endpointHeadersPlace(id)));
}
