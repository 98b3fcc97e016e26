import { Command } from 'commander';
import { adminAction } from '../../platform/cli/admin-action.ts';
import { alignedFields } from '../../platform/cli/aligned-text.ts';
import { addEndpoint } from '../endpoints.ts';
import {
  type EndpointCommandOptions,
  givenEndpointOptions,
  optionRulesOf,
  withEndpointOptions,
} from './endpoint-options.ts';

type AddOptions = EndpointCommandOptions & { waba: string; url: string };

/** `admin endpoint add` */
export function endpointAddCommand(): Command {
  const command = new Command('add')
    .description('add a webhook endpoint; prints the secret that its signatures are verified with')
    .requiredOption('--waba <id>', 'the WABA whose events it receives')
    .requiredOption('--url <url>', 'where they are sent, https:// unless the settings allow http');
  const example = 'endpoint add --waba 900000000000101 --url https://shop.example/webhooks --json';
  return adminAction<AddOptions>(withEndpointOptions(command), example, async ({ tools, options }) => {
    const { waba, url } = options;
    const given = { ...(await givenEndpointOptions(options)), url };
    const endpoint = await addEndpoint({ ...tools, ...optionRulesOf(tools) }, waba, given);
    return {
      json: endpoint,
      text: alignedFields([
        ['id', endpoint.id],
        ['secret', endpoint.secret],
        ['URL', endpoint.url],
        ['WABA', endpoint.wabaId],
        ['events', endpoint.eventTypes ?? 'all'],
      ]),
    };
  });
}
