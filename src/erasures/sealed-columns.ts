import type { SealedColumn } from '../platform/crypto/secret-box.ts';

// What sealed secrets are bound to: a copy of one in another row does not open.

/** What the steps of an erasure look for. */
export function erasureSubjectPlace(erasureId: string): string {
  return `erasures|subject|${erasureId}`;
}

/** The columns of this room with sealed texts. */
export const ERASURE_SECRETS: readonly SealedColumn[] = [
  {
    table: 'erasures',
    idColumn: 'id',
    idType: 'bigint',
    column: 'subject_sealed',
    place: erasureSubjectPlace,
  },
];
