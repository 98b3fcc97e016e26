import { type Browser, chromium } from 'playwright-core';
import { systemChromium } from '../../scripts/system-chromium.ts';
import { PATIENCE_MS } from './patience.ts';

/** Chromium tries to reach its maker otherwise. */
const QUIET = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
];

/** Starts the browser of a test file. Throws where there is no Chromium. */
export async function launchChrome(): Promise<Browser> {
  const executablePath = systemChromium();
  if (executablePath === undefined) throw new Error('no Chromium: install it or set HELIOGRAPH_CHROMIUM');
  const browser = await chromium.launch({ executablePath, args: QUIET });
  const newContext = browser.newContext.bind(browser);
  browser.newContext = async (options) => {
    const context = await newContext(options);
    context.setDefaultTimeout(PATIENCE_MS);
    return context;
  };
  return browser;
}
