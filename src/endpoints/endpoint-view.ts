import type { SecretBox } from '../platform/crypto/secret-box.ts';
import { customHeaderNames } from './endpoint-headers.ts';
import type { Endpoint } from './store.ts';

/**
 * An endpoint as it may be shown: without secrets, and of its own headers the names alone, because values are often
 * credentials. `customHeaderNames` null: the encryption key they were stored with is missing.
 */
export type EndpointView = Omit<Endpoint, 'customHeadersSealed'> & { customHeaderNames: string[] | null };

export function endpointView(secretBox: SecretBox, endpoint: Endpoint): EndpointView {
  const { customHeadersSealed, ...shown } = endpoint;
  return { ...shown, customHeaderNames: customHeaderNames(secretBox, endpoint) };
}
