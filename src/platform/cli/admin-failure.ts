import { AccountError } from '../account-error.ts';
import { InvalidSettingsError } from '../config/read-settings.ts';
import { SecretBoxError } from '../crypto/secret-box.ts';
import { GraphError } from '../graph/graph-error.ts';
import { InvalidCidrError } from '../http/address-guard.ts';
import { isTransientError } from '../postgres/error-class.ts';

/** What a failed command says; exit code 2 is wrong usage or settings, 1 everything else. */
export type AdminFailure = { code: string; message: string; exitCode: 1 | 2 };

/** Reads an error as something that the operator can act on; null when it is a fault of the program. */
export function adminFailure(error: unknown, databaseUrl: string | null): AdminFailure | null {
  if (error instanceof AccountError) {
    return { code: error.code, message: error.message, exitCode: error.code === 'invalid_value' ? 2 : 1 };
  }
  if (error instanceof InvalidSettingsError || error instanceof InvalidCidrError) {
    return { code: 'invalid_settings', message: error.message, exitCode: 2 };
  }
  if (error instanceof SecretBoxError) {
    const message = `${error.message} Check HELIOGRAPH_ENCRYPTION_KEYS.`;
    return { code: 'encryption_keys', message, exitCode: 1 };
  }
  if (error instanceof GraphError) {
    const message = `The upstream platform did not tell the phone numbers: ${error.message}`;
    return { code: 'upstream', message, exitCode: 1 };
  }
  return databaseFailure(error, databaseUrl);
}

function databaseFailure(error: unknown, databaseUrl: string | null): AdminFailure | null {
  const host = (databaseUrl === null ? null : URL.parse(databaseUrl)?.host) ?? 'its address';
  const sqlState = error instanceof Error && 'code' in error ? error.code : null;
  if (sqlState === '42P01') {
    const message = `The database at ${host} has no tables yet: run "heliograph migrate" first.`;
    return { code: 'not_migrated', message, exitCode: 1 };
  }
  if (sqlState === '28P01' || sqlState === '28000' || sqlState === '3D000') {
    const message = `The database at ${host} refuses the login: check HELIOGRAPH_DATABASE_URL (user, password, database name).`;
    return { code: 'database_login', message, exitCode: 1 };
  }
  if (sqlState === '57014' || sqlState === '55P03') {
    const message = `The database at ${host} is too busy for this now: nothing was changed, try again later.`;
    return { code: 'database_busy', message, exitCode: 1 };
  }
  if (!isTransientError(error)) return null;
  const message =
    `The database at ${host} does not answer: start it (npm start runs everything) ` +
    'or check HELIOGRAPH_DATABASE_URL.';
  return { code: 'database_away', message, exitCode: 1 };
}
