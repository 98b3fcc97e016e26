import type { EventType } from '../../src/platform/event-type.ts';
import type { ReceiverKind } from '../support/load/bad-receivers.ts';
import type { UpstreamAccount } from '../support/load/upstream-bodies.ts';

export type DrillEndpoint = {
  index: number;
  kind: ReceiverKind;
  /** Null: every type. */
  eventTypes: EventType[] | null;
};

/** A tenant with a WABA and a number of its own. */
export type DrillAccount = UpstreamAccount & { endpoints: DrillEndpoint[] };

/** With ten endpoints or more there is one of each kind. */
const KINDS: readonly ReceiverKind[] = [
  'good',
  'mixed',
  'hang',
  'error',
  'rate-limit',
  'reset',
  'drip',
  'redirect',
  'good',
  'close-early',
];
/** Every fifth endpoint wants only some types. */
const SOME_TYPES: EventType[] = ['status', 'order'];

/** WABAs with one and with two endpoints in turn, until there are `endpointCount` endpoints. */
export function drillAccounts(endpointCount: number): DrillAccount[] {
  const accounts: DrillAccount[] = [];
  for (let index = 0; index < endpointCount; ) {
    const n = accounts.length;
    const size = Math.min(1 + (n % 2), endpointCount - index);
    accounts.push({
      wabaId: `9100000000${String(n).padStart(5, '0')}`,
      phoneNumberId: `8100000000${String(n).padStart(5, '0')}`,
      displayPhoneNumber: `1202556${String(n).padStart(4, '0')}`,
      endpoints: Array.from({ length: size }, (_, offset) => endpointAt(index + offset)),
    });
    index += size;
  }
  return accounts;
}

function endpointAt(index: number): DrillEndpoint {
  const kind = KINDS[index % KINDS.length] ?? 'good';
  return { index, kind, eventTypes: index % 5 === 4 ? SOME_TYPES : null };
}
