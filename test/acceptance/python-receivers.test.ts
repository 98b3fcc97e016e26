import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { pythonEnvironment } from './support/python-environment.ts';
import { type Receiver, survivesKills } from './support/receivers.ts';
import { PROJECT } from './support/stack.ts';

/** The receivers of examples/receivers, with the client of this repository, behind the real gateway. */

const PLACE = join(PROJECT, 'examples', 'receivers');

/** What the client of this repository needs: it is not installed, but found beside its source. */
const CLIENT = ['httpx==0.28.1', 'pydantic==2.14.4'];

const requirementsOf = (folder: string) =>
  readFileSync(join(PLACE, folder, 'requirements.txt'), 'utf8')
    .trim()
    .split('\n');

/** A receiver by the command in docs/tenants/receivers.md, with the packages that it asks for; null without Python. */
async function receiverOf(folder: string, command: string): Promise<Receiver | null> {
  const python = await pythonEnvironment('receivers', [
    ...requirementsOf('fastapi'),
    ...requirementsOf('django'),
    ...CLIENT,
  ]);
  if (python === null) return null;
  return {
    command: 'sh',
    args: ['-euc', command],
    cwd: join(PLACE, folder),
    env: {
      PATH: `${python.bin}:${process.env.PATH}`,
      PYTHONPATH: join(PROJECT, 'clients', 'python', 'src'),
      // Nothing is written beside the sources.
      PYTHONPYCACHEPREFIX: join(python.bin, '..', 'cache'),
    },
  };
}

describe('200 webhooks through kills and lost responses are handled once, in the order of their eventId, by', () => {
  test.each([
    ['fastapi', 'exec uvicorn receiver:app --port "$PORT"'],
    [
      'django',
      'python manage.py migrate --run-syncdb --verbosity 0\nexec python manage.py runserver --noreload "$PORT"',
    ],
  ])('%s', async (folder, command) => {
    expect(readFileSync(join(PROJECT, 'docs/tenants/receivers.md'), 'utf8')).toContain(command);
    const receiver = await receiverOf(folder, command);
    if (receiver !== null) await survivesKills(receiver);
  });
});
