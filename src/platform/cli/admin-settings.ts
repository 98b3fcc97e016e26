import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AccountError } from '../account-error.ts';
import { type Config, loadConfig } from '../config/config.ts';
import { descriptionFile, type EmbeddedDescription } from '../local-stack/embedded-description.ts';
import { readJsonFile } from '../local-stack/private-file.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The settings of the installation that a command is for: the environment's when it names a database, otherwise those
 * of the stack that `npm start` keeps in `dataDir`. Throws InvalidSettingsError, and AccountError `no_installation`.
 */
export function adminSettings(env: Environment, dataDir: string): Config {
  if (env.HELIOGRAPH_DATABASE_URL?.trim()) return loadConfig(env);
  const description = readJsonFile(descriptionFile(dataDir));
  if (!isDescription(description)) {
    throw new AccountError(
      'no_installation',
      `There is no running stack in ${dataDir} and HELIOGRAPH_DATABASE_URL is not set: ` +
        'run npm start in another terminal, or set the HELIOGRAPH_* variables of your installation.',
    );
  }
  return loadConfig({ ...env, ...embeddedSettings(description, dataDir) });
}

/** The part of the embedded stack's settings that commands use; the others are there because they are required. */
function embeddedSettings(description: EmbeddedDescription, dataDir: string): Record<string, string> {
  const key = Buffer.from(readFileSync(join(dataDir, 'encryption-key'), 'utf8').trim(), 'base64url');
  return {
    HELIOGRAPH_MODE: 'development',
    HELIOGRAPH_DATABASE_URL: description.postgresUrl,
    HELIOGRAPH_TEMPORAL_ADDRESS: description.temporalAddress,
    HELIOGRAPH_TEMPORAL_NAMESPACE: 'default',
    HELIOGRAPH_TEMPORAL_UI_URL: description.temporalUiUrl,
    HELIOGRAPH_PUBLIC_URL: description.publicUrl,
    HELIOGRAPH_UPSTREAM_GRAPH_URL: description.sandboxUrl,
    HELIOGRAPH_UPSTREAM_APP_SECRETS: description.upstream.appSecret,
    HELIOGRAPH_UPSTREAM_VERIFY_TOKEN: description.upstream.verifyToken,
    HELIOGRAPH_WEBHOOK_ALLOW_HTTP: 'true',
    HELIOGRAPH_WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8,::1/128',
    HELIOGRAPH_ENCRYPTION_KEYS: `local:${key.toString('base64')}`,
    HELIOGRAPH_OBJECT_STORE_URL: description.minioUrl,
    HELIOGRAPH_OBJECT_STORE_ACCESS_KEY: 'not-used',
    HELIOGRAPH_OBJECT_STORE_SECRET_KEY: 'not-used',
  };
}

function isDescription(value: unknown): value is EmbeddedDescription {
  if (typeof value !== 'object' || value === null || !('upstream' in value)) return false;
  const { upstream } = value;
  const texts = ['postgresUrl', 'temporalAddress', 'temporalUiUrl', 'publicUrl', 'sandboxUrl', 'minioUrl'];
  return (
    texts.every((name) => typeof (value as Record<string, unknown>)[name] === 'string') &&
    typeof upstream === 'object' &&
    upstream !== null
  );
}
