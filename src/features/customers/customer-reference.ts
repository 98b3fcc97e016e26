import { readPhoneNumber, visibleText } from '../../platform/phone-number.ts';
import { invalidValue } from '../../platform/request-input.ts';

/** The digits of a phone number (or wa_id), or a business-scoped user id. */
export type CustomerReference = { phone: string } | { userId: string };

/** The form of business-scoped user ids. */
export const USER_ID = /^[A-Z]{2}\.(ENT\.)?[A-Za-z0-9]{1,128}$/;

export const NO_CUSTOMER =
  'The customer must be a phone number with its country code, such as +12025550143, or a user id, such as US.13491208655302741918.';

/** How a customer is named: by a phone number in any usual form, or by a business-scoped user id; null for anything else. */
export function customerReferenceOf(text: string): CustomerReference | null {
  const phone = readPhoneNumber(text);
  if (phone !== null) return { phone };
  const userId = visibleText(text);
  return USER_ID.test(userId) ? { userId } : null;
}

/** The same, for a request; what names no customer must not look like one who is not there. Throws RequestError `invalid_value`. */
export function readCustomerReference(text: string, param = 'customer'): CustomerReference {
  const reference = customerReferenceOf(text);
  if (reference === null) throw invalidValue(NO_CUSTOMER, param);
  return reference;
}
