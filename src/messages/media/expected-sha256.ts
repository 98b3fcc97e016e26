const HEX = /^[0-9a-f]{64}$/i;
const BASE64 = /^[A-Za-z0-9+/_-]{43}=?$/;

/**
 * The digest that upstream announced, 32 bytes: webhooks give base64 (44 characters), lookups give hexadecimal (64).
 * Null for anything else, which then cannot be checked.
 */
export function decodeSha256(text: string | null): Buffer | null {
  const trimmed = text?.trim() ?? '';
  if (HEX.test(trimmed)) return Buffer.from(trimmed, 'hex');
  return BASE64.test(trimmed) ? Buffer.from(trimmed, 'base64') : null;
}
