import { pino } from 'pino';

/** Set HELIOGRAPH_TEST_LOG=debug to see what the parts under test log. */
export const silentLogger = pino({ level: process.env.HELIOGRAPH_TEST_LOG ?? 'silent' });
