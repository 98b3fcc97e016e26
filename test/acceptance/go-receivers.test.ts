import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { onTestFinished, test } from 'vitest';
import { provideGo } from './support/programs.ts';
import { receiverCommand } from './support/receiver-document.ts';
import { survivesKills } from './support/receivers.ts';
import { PROJECT } from './support/stack.ts';

const run = promisify(execFile);
const RECEIVER = join(PROJECT, 'examples', 'receivers', 'go');

test('200 webhooks through kills and lost responses are handled once, in the order of their eventId, by net/http in Go', {
  timeout: 600_000,
}, async ({ skip }) => {
  if (!(await provideGo())) return skip();
  const folder = mkdtempSync(join(tmpdir(), 'heliograph-go-receiver-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  // Built before, so that a start takes no longer than a kill leaves time for.
  await run('go', ['vet', './...'], { cwd: RECEIVER });
  await run('go', ['build', '-o', join(folder, 'receiver'), '.'], { cwd: RECEIVER });
  const command = receiverCommand('go').replace('go run .', join(folder, 'receiver'));
  await survivesKills({ command: 'sh', args: ['-euc', command], cwd: folder });
});
