import type { Logger as PinoLogger } from 'pino';

/** What worker parts log to. Error = someone must act; a healthy system logs none. */
export type Logger = Pick<PinoLogger, 'debug' | 'info' | 'warn' | 'error'>;
