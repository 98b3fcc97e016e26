/**
 * Records workflow histories on real servers for test/unit/workflows/replay-histories.test.ts, into
 * test/fixtures/histories. Run: node scripts/record-histories.ts [NAME…] (about a minute); with names, only histories
 * whose file names begin with one of them are kept. When, says CONTRIBUTING.md.
 *
 * A history that is there already is kept, and the new one gets the next number: workflows that were started by the
 * code of then may still be running somewhere.
 */

import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { historyToJson } from '../test/support/histories/history-json.ts';
import { recordApprovals } from '../test/support/histories/record-approvals.ts';
import { recordBroadcasts } from '../test/support/histories/record-broadcasts.ts';
import { recordDeliveries } from '../test/support/histories/record-deliveries.ts';
import { recordErasures } from '../test/support/histories/record-erasures.ts';
import { recordMails } from '../test/support/histories/record-mails.ts';
import { recordMedia } from '../test/support/histories/record-media.ts';
import { recordNumbers } from '../test/support/histories/record-numbers.ts';
import { recordOperations } from '../test/support/histories/record-operations.ts';
import { recordSends } from '../test/support/histories/record-sends.ts';
import { recordSetUps } from '../test/support/histories/record-set-ups.ts';
import { recordTrouble } from '../test/support/histories/record-trouble.ts';
import { startRecordingStack } from '../test/support/histories/recording-stack.ts';
import { scrubHistory } from '../test/support/histories/scrub-history.ts';

const FOLDER = fileURLToPath(new URL('../test/fixtures/histories/', import.meta.url));

await mkdir(FOLDER, { recursive: true });
const wanted = process.argv.slice(2);
const stack = await startRecordingStack();
const found = new Set<string>();
try {
  for (const record of [
    recordDeliveries,
    recordTrouble,
    recordMedia,
    recordSends,
    recordBroadcasts,
    recordApprovals,
    recordNumbers,
    recordOperations,
    recordMails,
    recordSetUps,
    // The accounts are gone after it.
    recordErasures,
  ]) {
    for (const [name, workflowId] of Object.entries(await record(stack))) {
      if (wanted.length > 0 && !wanted.some((start) => name.startsWith(start))) continue;
      for (const start of wanted) if (name.startsWith(start)) found.add(start);
      const history = await stack.client.workflow.getHandle(workflowId).fetchHistory();
      const file = await freeName(name);
      const recorded = { workflowId, history: scrubHistory(historyToJson(history)) };
      await writeFile(`${FOLDER}${file}`, `${JSON.stringify(recorded, null, 1)}\n`);
      process.stdout.write(`${file}: ${history.events?.length} events\n`);
    }
  }
} finally {
  await stack.stop();
}
for (const start of wanted.filter((name) => !found.has(name))) {
  process.stderr.write(`No history has a name that begins with "${start}".\n`);
  process.exitCode = 1;
}

/** `<name>.<n>.json` with the first n that is free. */
async function freeName(name: string): Promise<string> {
  const taken = new Set(await readdir(FOLDER));
  for (let n = 1; ; n += 1) if (!taken.has(`${name}.${n}.json`)) return `${name}.${n}.json`;
}
