import type { SealedColumn } from '../../platform/crypto/secret-box.ts';

// What sealed secrets are bound to: a copy of one in another row does not open.

export function erasureSubjectPlace(erasureId: string): string {
  return `erasures|subject|${erasureId}`;
}

export const ERASURE_SECRETS: readonly SealedColumn[] = [
  {
    table: 'erasures',
    idColumn: 'id',
    idType: 'bigint',
    column: 'subject_sealed',
    place: erasureSubjectPlace,
  },
];
