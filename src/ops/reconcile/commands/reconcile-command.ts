import { Command, InvalidArgumentError } from 'commander';
import { type AdminOutcome, adminAction, alignedTable } from '../../../platform/cli/admin-action.ts';
import { openObjectStore } from '../../../platform/object-store/object-store.ts';
import { invalidValue } from '../../../platform/request-input.ts';
import { openTemporalConnection } from '../../../platform/temporal/client-connection.ts';
import type { TaskKind } from '../../../platform/temporal/workflow-tasks.ts';
import { type Finding, isLeft } from '../findings.ts';
import { reconcile } from '../reconcile.ts';

type Options = { fix?: true; dryRun?: true; rewound?: true; removeObjects?: number };

const HOUR_MS = 3_600_000;

export function reconcileCommand(taskKinds: readonly TaskKind[]): Command {
  const command = new Command('reconcile')
    .description('find and fix differences between database, object store and Temporal after a restore')
    .option('--dry-run', 'report only (the default)')
    .option('--fix', 'fix the differences that can be fixed')
    .option(
      '--rewound',
      'the database was restored to an earlier moment: pass over ids and sequence numbers that were given out since',
    )
    .option(
      '--remove-objects <hours>',
      'with --fix: remove objects that no row names and that are older than this',
      wholeHours,
    );
  return adminAction<Options>(
    command,
    'reconcile --fix',
    async ({ tools, options }) => {
      const fix = options.fix === true;
      if (fix && options.dryRun) throw invalidValue('Choose one of --fix and --dry-run.');
      const hours = options.removeObjects;
      const objectStore = openObjectStore(tools.config.objectStore);
      const temporal = openTemporalConnection(tools.config);
      try {
        const findings = await reconcile({
          ...tools,
          temporal,
          objectStore,
          taskKinds,
          fix,
          rewound: options.rewound === true,
          removeObjectsAfterMs: hours === undefined ? null : hours * HOUR_MS,
        });
        return describe(findings, fix);
      } finally {
        await temporal.close();
        objectStore.close();
      }
    },
    'npx heliograph-server',
  );
}

function wholeHours(text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw new InvalidArgumentError('Give a whole number of hours.');
  return Number(text);
}

function describe(findings: readonly Finding[], fix: boolean): AdminOutcome {
  const isDone = !isLeft(findings);
  const table = alignedTable(
    ['DIFFERENCE', 'FOUND', 'FIXED', 'LEFT', 'WHAT'],
    findings.map((one) => [one.kind, one.found, one.fixed, one.left, textOf(one)]),
    '',
  );
  return {
    json: { fix, ok: isDone, findings },
    text: `${table}\n\n${verdictOf(findings, fix)}`,
    found: isDone,
  };
}

function verdictOf(findings: readonly Finding[], fix: boolean): string {
  const unfinished = findings.filter(({ problem }) => problem !== null).length;
  const sentences = [
    ...(findings.some(({ left }) => left > 0)
      ? [fix ? 'Something is left to do.' : 'Something differs; --fix corrects it.']
      : []),
    ...(unfinished > 0 ? [`${unfinished} of ${findings.length} checks could not be completed.`] : []),
  ];
  return sentences.join(' ') || 'Nothing is left to do.';
}

function textOf({ what, found, note, problem, examples }: Finding): string {
  if (problem !== null) return `NOT FINISHED: ${problem}`;
  return found === 0 ? what : `${what}: ${note} (${examples.join(', ')})`;
}
