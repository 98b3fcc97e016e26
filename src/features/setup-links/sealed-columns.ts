import type { SealedColumn } from '../../platform/crypto/secret-box.ts';

// What sealed secrets are bound to: a copy of one in another row does not open.

export function setupTokenPlace(id: string): string {
  return `setup_links|token|${id}`;
}

export const SETUP_LINK_SECRETS: readonly SealedColumn[] = [
  { table: 'setup_links', idColumn: 'id', idType: 'bigint', column: 'token_sealed', place: setupTokenPlace },
];
