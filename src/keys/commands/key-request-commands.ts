import { Command } from 'commander';
import { type AdminOutcome, adminAction } from '../../platform/cli/admin-action.ts';
import { alignedFields, alignedTable } from '../../platform/cli/aligned-text.ts';
import type { Config } from '../../platform/config/config.ts';
import { workflowUrl } from '../../platform/temporal/workflow-url.ts';
import { type KeyRequest, keyRequestWorkflowId } from '../key-request-store.ts';
import {
  allKeyRequests,
  decideKeyRequest,
  keyRequestForOperator,
  waitingKeyRequests,
} from '../key-requests.ts';

/** `admin key-request …` */
export function keyRequestCommand(): Command {
  return new Command('key-request')
    .description('requests of tenants for API keys, which an operator approves or denies')
    .addCommand(listCommand())
    .addCommand(showCommand())
    .addCommand(decideCommand('approve', 'approved', 'let the tenant have the key shown, once'))
    .addCommand(decideCommand('deny', 'denied', 'refuse a request, or take an approval back'));
}

function listCommand(): Command {
  const command = new Command('list')
    .description('list the requests that wait for a decision, the oldest first')
    .option('--all', 'the newest requests, whatever their state');
  return adminAction<{ all?: boolean }>(command, 'key-request list', async ({ tools, options }) => {
    const requests = await (options.all ? allKeyRequests(tools) : waitingKeyRequests(tools));
    return {
      json: requests,
      text: alignedTable(
        ['ID', 'STATE', 'TENANT', 'WABA', 'ASKED BY', 'FOR', 'SCOPES', 'ASKED'],
        requests.map((request) => [
          request.id,
          request.state,
          request.businessName,
          request.wabaId,
          request.requester,
          request.purpose,
          request.scopes.join(','),
          request.createdAt,
        ]),
        'No request waits for a decision.',
      ),
    };
  });
}

function showCommand(): Command {
  const command = new Command('show').description('show one request').argument('<id>');
  return adminAction(command, 'key-request show 7', async ({ tools, args }) =>
    describeRequest(tools.config, await keyRequestForOperator(tools, args[0] ?? '')),
  );
}

function decideCommand(name: string, state: 'approved' | 'denied', description: string): Command {
  const command = new Command(name)
    .description(description)
    .argument('<id>', 'the id of the request, as key-request list shows it')
    .option('--note <text>', 'a note for the requester', '');
  const example = `key-request ${name} 7 --note "as agreed"`;
  return adminAction<{ note: string }>(command, example, async ({ tools, args, options }) => {
    const decision = { state, note: options.note };
    return describeRequest(tools.config, await decideKeyRequest(tools, args[0] ?? '', decision));
  });
}

function describeRequest({ temporal }: Config, request: KeyRequest): AdminOutcome {
  const url = workflowUrl(temporal, keyRequestWorkflowId(request.id));
  const { replacesKeyId, overlapHours } = request;
  return {
    json: { ...request, workflowUrl: url },
    text: alignedFields([
      ['id', request.id],
      ['state', request.state],
      ['tenant', request.businessName],
      ['WABA', request.wabaId],
      ['asked by', request.requester],
      ['for', request.purpose],
      ['scopes', request.scopes.join(', ')],
      ['works', request.validDays === null ? 'until it is revoked' : `${request.validDays} days`],
      ['replaces', replacesKeyId === null ? null : `key ${replacesKeyId}`],
      ['overlap', overlapHours === null ? null : `${overlapHours} hours`],
      ['asked', request.createdAt],
      ['decided by', request.decidedBy],
      ['note', request.note],
      ['shown to', request.revealedBy],
      ['finished', request.finishedAt],
      ['workflow', url],
    ]),
  };
}
