import { Command } from 'commander';
import { addEndpoint, endpointForOperator, endpointsOf, switchEndpoint } from '../../accounts/endpoints.ts';
import type { Config } from '../../config/config.ts';
import type { Endpoint } from '../../database/webhook-endpoints.ts';
import { makeAddressGuard } from '../../webhooks/address-guard.ts';
import { makeHostResolver } from '../../webhooks/resolve-host.ts';
import { type AdminOutcome, adminAction } from './admin-action.ts';
import { alignedFields, alignedTable } from './aligned-text.ts';
import { endpointTestCommand } from './endpoint-test-command.ts';

type AddOptions = { waba: string; url: string; description: string; events?: string[] };

/** `admin endpoint …` */
export function endpointCommand(): Command {
  return new Command('endpoint')
    .description("tenants' servers that receive webhooks")
    .addCommand(addCommand())
    .addCommand(listCommand())
    .addCommand(showCommand())
    .addCommand(switchCommand('enable', 'let its events go out, those that waited first', 'open', null))
    .addCommand(
      switchCommand('pause', 'let its events wait; none is lost', 'paused', 'paused by an operator'),
    )
    .addCommand(endpointTestCommand());
}

function addCommand(): Command {
  const command = new Command('add')
    .description('add a webhook endpoint; prints the secret that its signatures are verified with')
    .requiredOption('--waba <id>', 'the WABA whose events it receives')
    .requiredOption('--url <url>', 'where they are sent, https:// unless the settings allow http')
    .option('--description <text>', 'what it is for', '')
    .option('--events <types>', 'event types, comma separated (default: all, also those to come)', parseList);
  const example = 'endpoint add --waba 900000000000101 --url https://shop.example/webhooks --json';
  return adminAction<AddOptions>(command, example, async ({ tools, options }) => {
    const { waba, url, description, events = null } = options;
    const urlRules = urlRulesOf(tools.config);
    const endpoint = await addEndpoint({ ...tools, urlRules }, waba, {
      url,
      description,
      eventTypes: events,
    });
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

function urlRulesOf({ webhooks }: Config) {
  const guard = makeAddressGuard({ allowCidrs: webhooks.allowCidrs });
  return { allowHttp: webhooks.allowHttp, guard, resolve: makeHostResolver() };
}

function parseList(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

function listCommand(): Command {
  const command = new Command('list')
    .description('list the webhook endpoints of a WABA')
    .requiredOption('--waba <id>', 'the WABA');
  const example = 'endpoint list --waba 900000000000101';
  return adminAction<{ waba: string }>(command, example, async ({ tools, options }) => {
    const endpoints = await endpointsOf(tools, options.waba);
    return {
      json: endpoints,
      text: alignedTable(
        ['ID', 'MODE', 'EVENTS', 'URL', 'DESCRIPTION'],
        endpoints.map(({ id, mode, eventTypes, url, description }) => [
          id,
          mode,
          eventTypes ?? 'all',
          url,
          description,
        ]),
        `WABA ${options.waba} has no webhook endpoints yet; add one with: admin endpoint add --waba ${options.waba} --url <url>`,
      ),
    };
  });
}

function showCommand(): Command {
  const command = new Command('show').description('show a webhook endpoint').argument('<id>');
  return adminAction(command, 'endpoint show 3', async ({ tools, args }) =>
    describeEndpoint(await endpointForOperator(tools, args[0] ?? '')),
  );
}

function switchCommand(
  name: string,
  description: string,
  mode: 'open' | 'paused',
  reason: string | null,
): Command {
  const command = new Command(name).description(description).argument('<id>');
  return adminAction(command, `endpoint ${name} 3`, async ({ tools, args }) => {
    const { id, wabaId } = await endpointForOperator(tools, args[0] ?? '');
    await switchEndpoint(tools, wabaId, { id, mode, reason });
    return describeEndpoint(await endpointForOperator(tools, id));
  });
}

function describeEndpoint(endpoint: Endpoint): AdminOutcome {
  return {
    json: endpoint,
    text: alignedFields([
      ['id', endpoint.id],
      ['mode', endpoint.mode],
      ['reason', endpoint.modeReason],
      ['URL', endpoint.url],
      ['WABA', endpoint.wabaId],
      ['events', endpoint.eventTypes ?? 'all'],
      ['description', endpoint.description],
      ['created', endpoint.createdAt],
    ]),
  };
}
