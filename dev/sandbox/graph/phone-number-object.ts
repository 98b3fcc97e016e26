import type { PhoneNumber } from '../demo-accounts.ts';

/** A phone number as the Graph API shows it. */
export function phoneNumberObject(phone: PhoneNumber): Record<string, unknown> {
  return {
    verified_name: phone.verifiedName,
    display_phone_number: phone.displayPhoneNumber,
    id: phone.phoneNumberId,
    quality_rating: phone.qualityRating ?? 'GREEN',
    code_verification_status: phone.codeVerificationStatus ?? 'VERIFIED',
    platform_type: phone.status === 'PENDING' ? 'NOT_APPLICABLE' : 'CLOUD_API',
    status: phone.status ?? 'CONNECTED',
    name_status: phone.nameStatus ?? 'APPROVED',
    is_pin_enabled: phone.isPinEnabled ?? false,
    throughput: { level: phone.throughput ?? 'STANDARD' },
    ...(phone.isOnBizApp === true && { is_on_biz_app: true }),
  };
}

/** Keeps the asked-for members of an object and its id; all of them when nothing was asked for. */
export function pickFields(object: Record<string, unknown>, fields?: string): Record<string, unknown> {
  if (fields === undefined || fields === '') {
    return object;
  }
  const asked = new Set(['id', ...fields.split(',').map((field) => field.trim())]);
  return Object.fromEntries(Object.entries(object).filter(([name]) => asked.has(name)));
}
