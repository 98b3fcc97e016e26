import { type Logger, pino } from 'pino';
import type { Config } from '../config/config.ts';

/** JSON lines on stdout; what looks like a secret is cut out wherever it stands. */
export function openLogger(config: Pick<Config, 'logLevel'>, name: string): Logger {
  return pino({
    name,
    level: config.logLevel,
    redact: { paths: ['*.authorization', '*.secret', '*.accessToken', '*.apiKey'], censor: '[redacted]' },
  });
}
