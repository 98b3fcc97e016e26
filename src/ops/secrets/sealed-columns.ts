import {
  ENDPOINT_APP_SECRET,
  ENDPOINT_CLIENT_KEY,
  ENDPOINT_HEADERS,
  ENDPOINT_SECRET,
  ENDPOINT_SIGNING_KEY,
} from '../../engine/endpoint/endpoint-secrets.ts';
import { ACCESS_TOKEN } from '../../features/accounts/access-tokens.ts';
import { NUMBER_PIN } from '../../features/accounts/number-pins.ts';
import { MAIL_CONTENT } from '../../features/mail/mails.ts';
import { SETUP_TOKEN } from '../../features/setup-links/setup-link-store.ts';
import { TOTP_SECRET } from '../../features/users/second-factor.ts';
import { INSTALLATION_SECRET } from '../../platform/crypto/installation-secret.ts';
import { OPERATIONS_SECRET } from '../alerts/operations-url.ts';
import { ERASURE_SUBJECT } from '../erasures/erasure-step.ts';
import { HOOK_SECRET } from '../feed/hook-store.ts';

/** Every column of sealed texts: the check of whether an encryption key is still needed looks at these. */
export const SEALED_COLUMNS = [
  ENDPOINT_SECRET,
  ENDPOINT_SIGNING_KEY,
  ENDPOINT_APP_SECRET,
  ENDPOINT_CLIENT_KEY,
  ENDPOINT_HEADERS,
  ACCESS_TOKEN,
  NUMBER_PIN,
  OPERATIONS_SECRET,
  INSTALLATION_SECRET,
  ERASURE_SUBJECT,
  TOTP_SECRET,
  MAIL_CONTENT,
  HOOK_SECRET,
  SETUP_TOKEN,
].flatMap(({ columns }) => columns);
