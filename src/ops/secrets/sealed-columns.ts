import { ENDPOINT_SECRETS } from '../../engine/endpoint/sealed-columns.ts';
import { ACCOUNT_SECRETS } from '../../features/accounts/sealed-columns.ts';
import { MAIL_SECRETS } from '../../features/mail/sealed-columns.ts';
import { SETUP_LINK_SECRETS } from '../../features/setup-links/sealed-columns.ts';
import { USER_SECRETS } from '../../features/users/sealed-columns.ts';
import { INSTALLATION_SECRETS } from '../../platform/crypto/installation-secret.ts';
import type { SealedColumn } from '../../platform/crypto/secret-box.ts';
import { ALERT_SECRETS } from '../alerts/sealed-columns.ts';
import { ERASURE_SECRETS } from '../erasures/sealed-columns.ts';
import { HOOK_SECRETS } from '../feed/sealed-columns.ts';

/** Every column of sealed texts: the check of whether an encryption key is still needed looks at these. */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  ...[...ENDPOINT_SECRETS, ...ACCOUNT_SECRETS, ...ALERT_SECRETS, INSTALLATION_SECRETS],
  ...[...ERASURE_SECRETS, ...USER_SECRETS, ...MAIL_SECRETS, ...HOOK_SECRETS, ...SETUP_LINK_SECRETS],
];
