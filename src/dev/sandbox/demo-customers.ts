/** A customer whom developers can play. */
export type DemoCustomer = {
  /** Phone number in digits, the platform's wa_id. */
  waId: string;
  name: string;
};

/** The people whom the console offers; the numbers follow the conventions of the upstream fixtures. */
export const DEMO_CUSTOMERS: readonly DemoCustomer[] = [
  { waId: '12025550143', name: 'Asha Tester' },
  { waId: '12025550150', name: 'Farah Fixture' },
  { waId: '910000000143', name: 'Dev Placeholder' },
];
