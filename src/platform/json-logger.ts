import { type DestinationStream, type Logger, pino } from 'pino';
import type { Config } from './config/config.ts';
import { loggedError } from './error-redaction.ts';

/** JSON lines on stdout; errors without the data they quote, and what looks like a secret cut out wherever it stands. */
export function openLogger(
  config: Pick<Config, 'logLevel'>,
  name: string,
  destination?: DestinationStream,
): Logger {
  const serialize = (error: unknown) => loggedError(error);
  const options = {
    name,
    level: config.logLevel,
    serializers: { err: serialize, error: serialize },
    redact: { paths: ['*.authorization', '*.secret', '*.accessToken', '*.apiKey'], censor: '[redacted]' },
  };
  return destination === undefined ? pino(options) : pino(options, destination);
}
