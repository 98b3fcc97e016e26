import type { SealedColumn } from '../../platform/crypto/secret-box.ts';

// What sealed secrets are bound to: a copy of one in another row does not open.

/** Of both secrets of a hook: a rotation keeps the earlier one as it is sealed. */
export function hookSecretPlace(ref: string): string {
  return `operations_hooks|secret|${ref}`;
}

const OF_HOOKS = {
  table: 'operations_hooks',
  idColumn: 'ref',
  idType: 'text',
  place: hookSecretPlace,
} as const;

export const HOOK_SECRETS: readonly SealedColumn[] = [
  { ...OF_HOOKS, column: 'secret_sealed' },
  { ...OF_HOOKS, column: 'previous_secret_sealed' },
];
