/**
 * Takes pictures for the documentation: of the portal's pages, out of a stack that runs (`npm start`), or of the portal and
 * the Temporal UI in five situations, out of a stack that it starts (about six minutes).
 * Run: npm run screenshots -- [situations] [--data-dir .data] [--out docs/screenshots] [--only overview] [--format png]
 */

import { parseArgs } from 'node:util';
import { type Album, openCamera } from './screenshots/camera.ts';
import { livePortal } from './screenshots/live-portal.ts';
import { shotsOf } from './screenshots/shots.ts';
import { takeSituations } from './screenshots/situations.ts';
import { runningStack } from './screenshots/stack-browser.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    'data-dir': { type: 'string', default: '.data' },
    out: { type: 'string', default: 'docs/screenshots' },
    only: { type: 'string', default: '' },
    format: { type: 'string', default: 'webp' },
  },
});

const [subject = 'portal'] = positionals;
if (subject === 'portal') await takePortal(values['data-dir'], values);
else if (subject === 'situations') await takeSituations(values);
else fail(`There are pictures of "portal" and of "situations", not of "${subject}".`);

async function takePortal(dataDir: string, album: Album): Promise<void> {
  const stack = runningStack(dataDir);
  const camera = await openCamera(stack, album);
  try {
    for (const shot of shotsOf(await livePortal(stack))) await camera.take(shot);
  } finally {
    await camera.close();
  }
}

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}
