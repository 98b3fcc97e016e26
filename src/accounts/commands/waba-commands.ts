import { Command } from 'commander';
import { AccountError, invalidValue } from '../../platform/account-error.ts';
import { checkAccessToken, checkUpstreamId } from '../../platform/account-input.ts';
import { type AdminOutcome, type AdminTools, adminAction } from '../../platform/cli/admin-action.ts';
import { alignedFields, alignedTable } from '../../platform/cli/aligned-text.ts';
import { listWabas } from '../account-list.ts';
import { listPhoneNumbers } from '../accounts.ts';
import { addWaba, type GivenPhoneNumber, openAccessToken, type SavedWaba, setAccessToken } from '../wabas.ts';
import { type AccessTokenOptions, givenAccessToken, withAccessToken } from './access-token-option.ts';
import { setPaceCommand } from './number-pace-command.ts';
import { parsePhoneNumber } from './phone-number-option.ts';
import { numberRemoveCommand, wabaRemoveCommand } from './waba-remove-commands.ts';

type AddOptions = AccessTokenOptions & {
  tenant: string;
  waba: string;
  number?: GivenPhoneNumber[];
  fromUpstream?: boolean;
};

/** `admin waba …` */
export function wabaCommand(): Command {
  return new Command('waba')
    .description('WhatsApp Business Accounts of the tenants, with their phone numbers')
    .addCommand(addCommand())
    .addCommand(listCommand())
    .addCommand(setTokenCommand())
    .addCommand(setPaceCommand())
    .addCommand(wabaRemoveCommand())
    .addCommand(numberRemoveCommand());
}

function addCommand(): Command {
  const command = new Command('add')
    .description('add a WABA with its numbers to a tenant, or bring it up to date; what is not given stays')
    .requiredOption('--tenant <userId>', 'whose it is')
    .requiredOption('--waba <id>', 'its id at the upstream platform')
    .option('--number <id[:display[:name]]>', 'a phone number; may be repeated', parsePhoneNumber)
    .option('--from-upstream', 'add the numbers that the upstream platform lists; needs an access token');
  const example =
    'waba add --tenant 1 --waba 900000000000101 --number "800000000000111:12025550100:Fixture Store"';
  return adminAction<AddOptions>(withAccessToken(command), example, async ({ tools, options }) => {
    const accessToken = await givenAccessToken(options);
    const upstreamNumbers = options.fromUpstream
      ? await numbersFromUpstream(tools, options.waba, accessToken)
      : [];
    const phoneNumbers = [...upstreamNumbers, ...(options.number ?? [])];
    const waba = { wabaId: options.waba, phoneNumbers, accessToken };
    return describeSaved(await addWaba(tools, options.tenant, waba));
  });
}

/** Asks with the token given, else with the stored one. */
async function numbersFromUpstream(
  tools: AdminTools,
  wabaId: string,
  accessToken: string | null,
): Promise<GivenPhoneNumber[]> {
  checkUpstreamId('The WABA id', wabaId);
  const token = accessToken === null ? await openAccessToken(tools, wabaId) : checkAccessToken(accessToken);
  if (token === null) {
    throw new AccountError(
      'no_access_token',
      `WABA ${wabaId} has no access token to ask the upstream platform with; add --access-token-stdin.`,
    );
  }
  const { openGraphClient } = await import('../../platform/graph/graph-client.ts');
  const graph = openGraphClient(tools.config);
  try {
    return await graph.listPhoneNumbers(wabaId, token);
  } finally {
    await graph.close();
  }
}

function describeSaved(waba: SavedWaba): AdminOutcome {
  const notes: string[] = [];
  if (waba.phoneNumbers.length === 0) {
    notes.push('the WABA has no phone number yet: what comes for its numbers is kept, but makes no events.');
  }
  if (!waba.hasAccessToken) {
    notes.push('the WABA has no access token yet: media cannot be fetched (admin waba set-token).');
  }
  return {
    json: { ...waba, userId: Number(waba.userId) },
    notes,
    text: [
      alignedFields([
        ['wabaId', waba.wabaId],
        ['userId', waba.userId],
        ['business', waba.businessName],
        ['access token', waba.hasAccessToken ? 'stored' : 'none'],
      ]),
      '',
      numberTable(waba),
    ].join('\n'),
  };
}

function numberTable({ phoneNumbers }: Pick<SavedWaba, 'phoneNumbers'>): string {
  return alignedTable(
    ['PHONE NUMBER ID', 'NUMBER', 'NAME'],
    phoneNumbers.map((number) => [number.phoneNumberId, number.displayPhoneNumber, number.verifiedName]),
    'no phone numbers',
  );
}

function listCommand(): Command {
  const command = new Command('list').description('list all WABAs with their numbers');
  return adminAction(command, 'waba list', async ({ tools }) => {
    const wabas = await Promise.all(
      (await listWabas(tools.database)).map(async (waba) => ({
        ...waba,
        userId: Number(waba.userId),
        phoneNumbers: await listPhoneNumbers(tools.database, waba.wabaId),
      })),
    );
    return {
      json: wabas,
      text: alignedTable(
        ['WABA', 'USER ID', 'BUSINESS', 'ACCESS TOKEN', 'PHONE NUMBER IDS'],
        wabas.map((waba) => [
          waba.wabaId,
          waba.userId,
          waba.businessName,
          waba.hasAccessToken ? 'stored' : 'none',
          waba.phoneNumbers.map((number) => number.phoneNumberId),
        ]),
        'There are no WABAs yet; add one with: admin waba add --tenant <userId> --waba <id>',
      ),
    };
  });
}

function setTokenCommand(): Command {
  const command = new Command('set-token')
    .description('give a WABA a new upstream access token; it is stored encrypted')
    .argument('<wabaId>');
  const example = 'waba set-token 900000000000101 --access-token-stdin < token.txt';
  return adminAction<AccessTokenOptions>(
    withAccessToken(command),
    example,
    async ({ tools, args, options }) => {
      const [wabaId = ''] = args;
      const accessToken = await givenAccessToken(options);
      if (accessToken === null)
        throw invalidValue('Give the token with --access-token-stdin or --access-token.');
      await setAccessToken(tools, wabaId, accessToken);
      return {
        json: { wabaId, hasAccessToken: true },
        text: `WABA ${wabaId} has a new access token.`,
      };
    },
  );
}
