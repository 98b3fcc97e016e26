import { once } from 'node:events';
import { Command } from 'commander';
import { type AdminOutcome, adminAction, alignedFields } from '../cli/admin-action.ts';
import { printableJson } from '../cli/terminal-text.ts';
import { type AuditFinding, exportAudit, verifyAudit } from './audit-chain.ts';

export function auditCommand(): Command {
  return new Command('audit')
    .description('the log of changes and of reads')
    .addCommand(verifyCommand())
    .addCommand(exportCommand());
}

const MEANING: Record<AuditFinding['kind'], string> = {
  changed: 'the entry or its place was changed',
  removed: 'the entry was removed',
  not_chained: 'the entry was put in beside the application',
  expiry_differs: 'what retention removed is not what this entry says',
  redaction_differs: 'the rest of the entry that an erasure cut is not what this entry says',
  gap: 'a part of the chain before it was removed',
  anchor_differs: 'the chain up to here is not the one of the anchor',
  cut_off: 'the chain ends before the anchor',
};

function verifyCommand(): Command {
  const command = new Command('verify')
    .description('look for entries that were changed, removed or put in; exit code 1 when there are any')
    .option('--anchor <position:hash>', 'an earlier end of the chain, from the log of a worker');
  return adminAction<{ anchor?: string }>(command, 'audit verify --json', async ({ tools, options }) => {
    const verdict = await verifyAudit(tools.database, options.anchor ?? null);
    const { entries, expired, redacted, last, findings } = verdict;
    const lines = findings.map(({ kind, position, entryId }) => {
      const place = [position && `position ${position}`, entryId && `entry ${entryId}`].filter(Boolean);
      return `${place.join(', ')}: ${MEANING[kind]}`;
    });
    return {
      json: verdict,
      found: findings.length === 0,
      text: [
        alignedFields([
          ['entries', entries.toLocaleString('en-US')],
          ['expired', expired.toLocaleString('en-US')],
          ['redacted', redacted.toLocaleString('en-US')],
          ['anchor', `${last.position}:${last.hash}`],
          ['findings', findings.length === 0 ? 'none' : findings.length],
        ]),
        ...lines,
      ].join('\n'),
    };
  });
}

function exportCommand(): Command {
  const command = new Command('export').description(
    'print all entries with their hashes, one JSON object a line; the number of entries goes to standard error',
  );
  return adminAction(command, 'audit export > audit.jsonl', async ({ tools }): Promise<AdminOutcome> => {
    let entries = 0;
    for await (const line of exportAudit(tools.database)) {
      // A file has the bytes that the hashes are of.
      if (!process.stdout.write(process.stdout.isTTY ? printableJson(line) : line))
        await once(process.stdout, 'drain');
      entries += 1;
    }
    return { json: { entries }, text: '', isPrinted: true, notes: [`${entries} entries`] };
  });
}
