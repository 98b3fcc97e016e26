import { accessTokenPlace, type SecretBox, SecretBoxError } from '../platform/crypto/secret-box.ts';
import type { Database } from '../platform/postgres/database.ts';
import { findWaba } from './accounts.ts';

/** There is no access token to ask upstream with; an operator can change that. */
export class AccessTokenProblem extends Error {
  constructor(problem: string) {
    super(problem);
    this.name = 'AccessTokenProblem';
  }
}

/** The upstream access token of a WABA. Throws AccessTokenProblem, with what an operator has to do. */
export async function openAccessToken(
  tools: { database: Database; secretBox: SecretBox },
  wabaId: string,
): Promise<string> {
  const sealed = (await findWaba(tools.database, wabaId))?.accessTokenSealed ?? null;
  if (sealed === null) {
    throw new AccessTokenProblem(
      `WABA ${wabaId} has no upstream access token. Set one with the admin command.`,
    );
  }
  try {
    return tools.secretBox.open(sealed, accessTokenPlace(wabaId));
  } catch (error) {
    if (!(error instanceof SecretBoxError)) throw error;
    throw new AccessTokenProblem(
      `The upstream access token of WABA ${wabaId} cannot be decrypted (${error.code}). ` +
        'Put its key back into HELIOGRAPH_ENCRYPTION_KEYS or set the token anew.',
    );
  }
}
