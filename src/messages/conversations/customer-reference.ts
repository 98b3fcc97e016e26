const PHONE = /^(?:tel:)?[\s+]*\d[\d\s().\-/]*$/i;

/** How a caller names a customer: the digits of a phone number (or wa_id), or a business-scoped user id. */
export type CustomerReference = { phone: string } | { userId: string };

/**
 * Reads a phone number in any usual form (`+1 (202) 555-0143`, `001202…`, `tel:+1-202-…`) or a wa_id; anything else is
 * taken for a business-scoped user id.
 */
export function readCustomerReference(text: string): CustomerReference {
  const trimmed = text.trim();
  if (!PHONE.test(trimmed)) return { userId: trimmed };
  // No country code begins with 0: two of them stand for the +.
  return { phone: trimmed.replace(/\D/g, '').replace(/^00/, '') };
}
