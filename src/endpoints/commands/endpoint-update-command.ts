import { Command } from 'commander';
import { invalidValue } from '../../platform/account-error.ts';
import { adminAction } from '../../platform/cli/admin-action.ts';
import type { EndpointMove } from '../endpoint-move.ts';
import { endpointForOperator, endpointStatus, updateEndpoint } from '../endpoints.ts';
import {
  type EndpointCommandOptions,
  givenEndpointOptions,
  optionRulesOf,
  withEndpointOptions,
} from './endpoint-options.ts';
import { describeEndpoint } from './endpoint-text.ts';

type UpdateOptions = EndpointCommandOptions & { url?: string; removeHeader?: string[]; clearHeaders?: true };

/** `admin endpoint update` */
export function endpointUpdateCommand(): Command {
  const command = new Command('update')
    .description('change what is given of a webhook endpoint; "default" as a value goes back to the default')
    .argument('<id>')
    .option(
      '--url <url>',
      'where its webhooks are sent, waiting ones included; own headers go to another host only if given again',
    );
  withEndpointOptions(command)
    .option('--remove-header <name...>', 'take these headers of its own away')
    .option('--clear-headers', 'take all headers of its own away');
  const example = 'endpoint update 3 --events message,status --timeout-ms 5000';
  return adminAction<UpdateOptions>(command, example, async ({ tools, args, options }) => {
    const { id, wabaId } = await endpointForOperator(tools, args[0] ?? '');
    const { url, removeHeader = [], clearHeaders } = options;
    const { customHeaders, ...given } = await givenEndpointOptions(options);
    const removed = Object.fromEntries(removeHeader.map((name) => [name, null]));
    const headers = { ...removed, ...customHeaders };
    const namesHeaders = Object.keys(headers).length > 0;
    if (clearHeaders && namesHeaders) throw invalidValue('--clear-headers goes with no other header option.');
    const patch = {
      ...given,
      ...(url !== undefined && { url }),
      ...(namesHeaders && { customHeaders: headers }),
      ...(clearHeaders && { customHeaders: null }),
    };
    if (Object.keys(patch).length === 0) throw invalidValue('Say what is to be changed; see --help.');
    const move = await updateEndpoint({ ...tools, ...optionRulesOf(tools) }, wabaId, id, patch);
    const changed = await endpointStatus(tools, wabaId, id);
    const note = `the order scope becomes "${changed.wantedOrderScope}" once nothing of the present one is open, or while it is paused.`;
    const notes = changed.wantedOrderScope === null ? [] : [note];
    const { json, ...described } = describeEndpoint(changed, [...notes, ...moveNotes(id, move)]);
    const { droppedHeaderNames, secretRotationAdvised } = move;
    return { ...described, json: { ...json, droppedHeaderNames, secretRotationAdvised } };
  });
}

function moveNotes(id: string, { droppedHeaderNames, secretRotationAdvised }: EndpointMove): string[] {
  const names = droppedHeaderNames.join(', ');
  const dropped = `the URL leads to another server, so these own headers were dropped: ${names}; give them again with --header.`;
  const rotate = `the server before still knows the signing secret: "endpoint rotate-secret ${id}" makes a new one.`;
  return [...(names === '' ? [] : [dropped]), ...(secretRotationAdvised ? [rotate] : [])];
}
