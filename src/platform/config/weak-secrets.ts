import { readAppSecret } from './app-secret.ts';

/** The sandbox upstream signs with this; the fixtures do too. Everybody can read it. */
export const DEVELOPMENT_APP_SECRET = 'test-app-secret';
export const DEVELOPMENT_VERIFY_TOKEN = 'heliograph-verify';

/** Those of the upstream platform have 32. */
const MIN_SECRET_CHARS = 16;

type Values = { appSecrets: readonly string[]; verifyToken: string; encryptionKeys: string };

/** What is wrong with secrets for production: anybody could know or guess them. Never holds one. */
export function weakSecretProblems({ appSecrets, verifyToken, encryptionKeys }: Values): string[] {
  const problems: string[] = [];
  const secrets = appSecrets.map((text) => readAppSecret(text).secret);
  if (secrets.includes(DEVELOPMENT_APP_SECRET)) {
    problems.push(
      'HELIOGRAPH_UPSTREAM_APP_SECRETS holds the secret of the sandbox, which everybody can read; take that of your upstream app',
    );
  } else if (secrets.some((secret) => secret.length < MIN_SECRET_CHARS)) {
    problems.push(
      `HELIOGRAPH_UPSTREAM_APP_SECRETS holds a secret of less than ${MIN_SECRET_CHARS} characters, which can be guessed`,
    );
  }
  if (verifyToken === DEVELOPMENT_VERIFY_TOKEN) {
    problems.push(
      'HELIOGRAPH_UPSTREAM_VERIFY_TOKEN is that of the sandbox, which everybody can read; make one with: openssl rand -hex 16',
    );
  }
  if (encryptionKeys.split(',').some(isGuessableKey)) {
    problems.push(
      'HELIOGRAPH_ENCRYPTION_KEYS holds a key that is not random; make one with: openssl rand -base64 32',
    );
  }
  return problems;
}

/** 32 random bytes have 30 different ones; those of tests have one. Keys of another form are refused where they are read. */
function isGuessableKey(text: string): boolean {
  const bytes = Buffer.from(text.slice(text.indexOf(':') + 1).trim(), 'base64');
  return bytes.length > 0 && new Set(bytes).size < 8;
}
