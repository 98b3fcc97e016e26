import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { describe, onTestFinished, test } from 'vitest';
import { installClient } from './support/client-project.ts';
import { npmPackages } from './support/npm-packages.ts';
import { receiverCommand } from './support/receiver-document.ts';
import { survivesKills } from './support/receivers.ts';
import { PROJECT } from './support/stack.ts';

/** The receivers of examples/receivers for Node.js, with the client as it is packed, behind the real gateway. */

const PACKAGES = ['express@5.3.0', 'fastify@5.12.8', 'standardwebhooks@1.1.1'];

/** A project with a receiver, and what docs/tenants/receivers.md says to install. */
async function projectOf(name: string): Promise<string> {
  const project = mkdtempSync(join(tmpdir(), `heliograph-${name}-`));
  onTestFinished(() => rmSync(project, { recursive: true, force: true }));
  const place = await npmPackages('receivers', PACKAGES);
  await installClient(project, { [join(place, 'node_modules')]: [] });
  cpSync(join(PROJECT, 'examples', 'receivers', name), project, { recursive: true });
  return project;
}

describe('200 webhooks through kills and lost responses are handled once, in the order of their eventId, by', () => {
  test.each(['express', 'fastify'])('%s', async (name) => {
    const cwd = await projectOf(name);
    const command = receiverCommand(name);
    const path = `${dirname(process.execPath)}${delimiter}${process.env.PATH}`;
    await survivesKills({ command: 'sh', args: ['-euc', command], cwd, env: { PATH: path } });
  });
});
