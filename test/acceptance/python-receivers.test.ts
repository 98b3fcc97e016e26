import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { documentBlocks } from '../support/document-blocks.ts';
import { pythonEnvironment } from './support/python-environment.ts';
import { type Receiver, survivesKills } from './support/receivers.ts';
import { PROJECT } from './support/stack.ts';

/** The receivers of docs/tenants/receivers.md in Python, with the client of this repository, behind the real gateway. */

const RECEIVERS = join(PROJECT, 'examples', 'receivers');
const FOLDERS = ['fastapi', 'django'];
const CLIENT = join(PROJECT, 'clients', 'python');

const blocksMarked = (mark: string) =>
  documentBlocks().filter(
    ({ document, marker }) => document === 'receivers.md' && marker?.startsWith(`${mark}: `),
  );

/** A receiver as its commands in the document start it; null without Python. */
async function receiverIn(folder: string): Promise<Receiver | null> {
  const python = await pythonEnvironment('receivers');
  if (python === null) return null;
  const commands = blocksMarked('start').find(({ marker }) => marker === `start: ${folder}`);
  return {
    command: 'sh',
    args: ['-euc', commands?.code ?? 'exit 1'],
    cwd: join(RECEIVERS, folder),
    env: {
      PATH: `${python.bin}:${process.env.PATH}`,
      PYTHONPATH: join(CLIENT, 'src'),
      // Nothing is written beside the sources.
      PYTHONPYCACHEPREFIX: join(python.bin, '..', 'cache'),
    },
  };
}

test('the document shows the receivers as they are', () => {
  const blocks = blocksMarked('receiver');
  for (const folder of FOLDERS) expect(blocks.some(({ marker }) => marker?.includes(folder))).toBe(true);
  for (const { marker, code } of blocks) {
    const file = join(RECEIVERS, marker?.replace('receiver: ', '') ?? '');
    expect(`${code.trimEnd()}\n`, marker ?? '').toBe(readFileSync(file, 'utf8'));
  }
});

describe('200 webhooks through kills and lost responses are handled once, in the order of their eventId, by', () => {
  test.each(FOLDERS)('%s', async (folder) => {
    const receiver = await receiverIn(folder);
    if (receiver !== null) await survivesKills(receiver);
  });
});
