import { Command } from 'commander';
import { optionRulesOf } from '../../endpoints/endpoint-options.ts';
import {
  type AdminOutcome,
  adminAction,
  alignedFields,
  alignedTable,
} from '../../platform/cli/admin-action.ts';
import {
  clearOperationsUrl,
  endpointAlertsOf,
  operationsUrlOf,
  rotateOperationsSecret,
  type SavedOperationsUrl,
  setOperationsUrl,
} from '../operations-url.ts';

type WabaOption = { waba: string };

/** `admin operations-url …` */
export function operationsUrlCommand(): Command {
  return new Command('operations-url')
    .description('where a tenant hears that one of its webhook endpoints is in trouble')
    .addCommand(setCommand())
    .addCommand(showCommand())
    .addCommand(rotateCommand())
    .addCommand(clearCommand());
}

function setCommand(): Command {
  const command = withWaba(new Command('set'))
    .description(
      'send alerts to a URL; the first time, prints the secret that its signatures are verified with',
    )
    .requiredOption(
      '--url <url>',
      'https:// unless the settings allow http; not the URL of a webhook endpoint',
    );
  const example = 'operations-url set --waba 900000000000101 --url https://shop.example/alerts --json';
  return adminAction<WabaOption & { url: string }>(command, example, async ({ tools, options }) => {
    const { urlRules } = optionRulesOf(tools);
    return describeSaved(await setOperationsUrl({ ...tools, urlRules }, options.waba, options.url));
  });
}

function rotateCommand(): Command {
  const command = withWaba(new Command('rotate-secret')).description(
    'make a new secret; from the next attempt on, it alone signs',
  );
  const example = 'operations-url rotate-secret --waba 900000000000101 --json';
  return adminAction<WabaOption>(command, example, async ({ tools, options }) =>
    describeSaved(await rotateOperationsSecret(tools, options.waba)),
  );
}

function describeSaved(saved: SavedOperationsUrl): AdminOutcome {
  const note = `the server before still knows the secret: "operations-url rotate-secret --waba ${saved.wabaId}" makes a new one.`;
  return {
    json: saved,
    notes: saved.secretRotationAdvised ? [note] : [],
    text: alignedFields([
      ['WABA', saved.wabaId],
      ['URL', saved.url],
      ['secret', saved.secret ?? 'as before'],
    ]),
  };
}

function showCommand(): Command {
  const command = withWaba(new Command('show')).description('show the URL and the newest alerts');
  const example = 'operations-url show --waba 900000000000101';
  return adminAction<WabaOption>(command, example, async ({ tools, options }) => {
    const url = await operationsUrlOf(tools, options.waba);
    const alerts = await endpointAlertsOf(tools, options.waba);
    return {
      json: { wabaId: options.waba, url, alerts },
      text: [
        alignedFields([['URL', url]]),
        '',
        alignedTable(
          ['ALERT', 'ENDPOINT', 'STATE', 'ATTEMPTS', 'LAST ERROR', 'AT'],
          alerts.map((alert) => [
            alert.alert,
            alert.endpointId,
            alert.state,
            alert.attempts,
            alert.lastError,
            alert.createdAt,
          ]),
          'There were no alerts yet.',
        ),
      ].join('\n'),
    };
  });
}

function clearCommand(): Command {
  const command = withWaba(new Command('clear')).description('send no more alerts; the secret is forgotten');
  const example = 'operations-url clear --waba 900000000000101';
  return adminAction<WabaOption>(command, example, async ({ tools, options }) => {
    await clearOperationsUrl(tools, options.waba);
    return {
      json: { wabaId: options.waba, url: null },
      text: `WABA ${options.waba} has no operations URL any more.`,
    };
  });
}

function withWaba(command: Command): Command {
  return command.requiredOption('--waba <id>', 'the WABA');
}
