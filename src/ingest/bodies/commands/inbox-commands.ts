import { Command } from 'commander';
import { readWaitingBodies } from '../../../engine/inbox/waiting-bodies.ts';
import { adminAction, alignedFields, alignedTable } from '../../../platform/cli/admin-action.ts';
import { countInbox, listQuarantineReasons, oldestWaitingBodyAt, retryInbox } from '../quarantine.ts';

const REASON_DAYS = 8;

export function inboxCommand(): Command {
  return new Command('inbox')
    .description('bodies that came from the upstream platform')
    .addCommand(statusCommand())
    .addCommand(retryCommand());
}

function statusCommand(): Command {
  const command = new Command('status').description(
    `waiting, failed and quarantined bodies, with the reasons of the last ${REASON_DAYS} days`,
  );
  return adminAction(command, 'inbox status', async ({ tools }) => {
    const [counts, oldestWaitingAt, awaiting, reasons] = await Promise.all([
      countInbox(tools.database, ['new', 'quarantined', 'failed']),
      oldestWaitingBodyAt(tools.database),
      readWaitingBodies(tools.database),
      listQuarantineReasons(tools.database, REASON_DAYS),
    ]);
    const { new: waiting, quarantined, failed } = counts;
    return {
      json: { waiting, oldestWaitingAt, awaitingNumber: awaiting.count, quarantined, failed, reasons },
      text: [
        alignedFields([
          [
            'waiting',
            oldestWaitingAt === null ? waiting : `${waiting}, since ${oldestWaitingAt.toISOString()}`,
          ],
          ...(awaiting.count > 0 ? [['await a phone number', awaiting.count] as const] : []),
          ['quarantined', quarantined],
          ['failed', failed],
        ]),
        '',
        alignedTable(
          ['COUNT', 'REASON', 'FIELD', 'WABA', 'LAST DAY'],
          reasons.map((reason) => [reason.count, reason.reason, reason.field, reason.wabaId, reason.lastDay]),
          `nothing was quarantined in the last ${REASON_DAYS} days`,
        ),
      ].join('\n'),
    };
  });
}

function retryCommand(): Command {
  const command = new Command('retry')
    .description(
      'ingest failed and quarantined bodies again, after an upgrade or after adding a number; ' +
        'items already processed create no second event',
    )
    .option('--failed-only', 'only bodies that failed');
  return adminAction<{ failedOnly?: boolean }>(command, 'inbox retry', async ({ tools, options }) => {
    const retried = await retryInbox(
      tools.database,
      options.failedOnly ? ['failed'] : ['failed', 'quarantined'],
    );
    const what = retried === 1 ? 'body is' : 'bodies are';
    return { json: { retried }, text: `${retried} ${what} taken in again.` };
  });
}
