/** One business phone number as the stand-in platform knows it. */
export type PhoneNumber = {
  wabaId: string;
  phoneNumberId: string;
  /** As people write it; webhook metadata carries its digits only. */
  displayPhoneNumber: string;
  verifiedName: string;
  qualityRating?: string;
  codeVerificationStatus?: string;
  /** The level: `STANDARD` unless given. */
  throughput?: string;
  isOnBizApp?: boolean;
  /** `PENDING` until the number is registered; `CONNECTED` unless given. */
  status?: string;
  /** Of the display name: `APPROVED` unless given. */
  nameStatus?: string;
  isPinEnabled?: boolean;
  /** Of its two-step verification; never shown. */
  pin?: string;
};

/** The numbers of the demo tenants; the ids follow the conventions of the upstream fixtures. */
export const DEMO_PHONE_NUMBERS: readonly PhoneNumber[] = [
  {
    wabaId: '900000000000101',
    phoneNumberId: '800000000000111',
    displayPhoneNumber: '+1 202-555-0100',
    verifiedName: 'Fixture Store',
  },
  {
    wabaId: '900000000000101',
    phoneNumberId: '800000000000112',
    displayPhoneNumber: '+1 202-555-0101',
    verifiedName: 'Fixture Store 2',
    qualityRating: 'UNKNOWN',
    codeVerificationStatus: 'NOT_VERIFIED',
  },
  {
    wabaId: '900000000000202',
    phoneNumberId: '800000000000221',
    displayPhoneNumber: '+91 00000 00221',
    verifiedName: 'Fixture Store India',
  },
];

/** The number that demo messages are sent to, of the tenant whose API key `npm start` prints. */
export const DEMO_PHONE_NUMBER_ID = '800000000000111';

/** The numbers known to one server, which tests may add to. */
export type PhoneDirectory = {
  add: (phone: PhoneNumber) => void;
  find: (phoneNumberId: string) => PhoneNumber | undefined;
  ofWaba: (wabaId: string) => PhoneNumber[];
  /** Adds a WABA that need not have a number. */
  addWaba: (wabaId: string, atMs: number) => void;
  hasWaba: (wabaId: string) => boolean;
  /** Milliseconds since 1970; undefined: it was not added, but came with its numbers. */
  wabaMadeAt: (wabaId: string) => number | undefined;
};

/** Creates a directory that starts with the demo numbers. */
export function createPhoneDirectory(): PhoneDirectory {
  const byId = new Map(DEMO_PHONE_NUMBERS.map((phone) => [phone.phoneNumberId, phone]));
  const madeAtMs = new Map<string, number>();
  const ofWaba = (wabaId: string) => [...byId.values()].filter((phone) => phone.wabaId === wabaId);
  return {
    add: (phone) => {
      byId.set(phone.phoneNumberId, phone);
    },
    find: (phoneNumberId) => byId.get(phoneNumberId),
    ofWaba,
    addWaba: (wabaId, atMs) => {
      madeAtMs.set(wabaId, atMs);
    },
    hasWaba: (wabaId) => madeAtMs.has(wabaId) || ofWaba(wabaId).length > 0,
    wabaMadeAt: (wabaId) => madeAtMs.get(wabaId),
  };
}

/** A customer that developers can play. */
export type DemoCustomer = {
  /** Phone number in digits, the platform's wa_id. */
  waId: string;
  name: string;
};

/** The customers of the console; the numbers follow the conventions of the upstream fixtures. */
export const DEMO_CUSTOMERS: readonly DemoCustomer[] = [
  { waId: '12025550143', name: 'Asha Tester' },
  { waId: '12025550150', name: 'Farah Fixture' },
  { waId: '910000000143', name: 'Dev Placeholder' },
];
