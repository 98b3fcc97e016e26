import type { SealedColumn } from '../../platform/crypto/secret-box.ts';

// What sealed secrets are bound to: a copy of one in another row does not open.

/** What an e-mail says while it is on its way: it can hold a one-time link. */
export function mailContentPlace(mailId: string): string {
  return `mails|content|${mailId}`;
}

export const MAIL_SECRETS: readonly SealedColumn[] = [
  { table: 'mails', idColumn: 'id', idType: 'uuid', column: 'content_sealed', place: mailContentPlace },
];
