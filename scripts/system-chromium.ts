import { existsSync } from 'node:fs';

/** The headless shell takes less than half of the processor time. */
const PATHS = [
  process.env.HELIOGRAPH_CHROMIUM ?? '',
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
];

/** Where Debian and others put Chromium; `npm test` installs it where it is missing. */
export function systemChromium(): string | undefined {
  return PATHS.find((path) => path !== '' && existsSync(path));
}
