import { Command, InvalidArgumentError, Option } from 'commander';
import {
  type AdminOutcome,
  type AdminTools,
  adminAction,
  alignedFields,
  alignedTable,
} from '../../../platform/cli/admin-action.ts';
import { readStdin } from '../../../platform/cli/given-text.ts';
import {
  checkAccessToken,
  checkUpstreamId,
  invalidValue,
  RequestError,
} from '../../../platform/request-input.ts';
import { AccessTokenProblem, openAccessToken } from '../access-tokens.ts';
import { knownWaba, listPhoneNumbers, listWabas } from '../accounts.ts';
import { MARKETING_ROUTES, setMarketingRoute } from '../marketing-route.ts';
import { listNumberPaces, paceOfNumber, setNumberPace, wabaOfNumber } from '../number-pace.ts';
import { removeNumber } from '../remove-number.ts';
import { addWaba, type GivenPhoneNumber, type SavedWaba, setAccessToken } from '../wabas.ts';

type AddOptions = AccessTokenOptions & {
  tenant: string;
  waba: string;
  number?: GivenPhoneNumber[];
  fromUpstream?: boolean;
};

export function wabaCommand(): Command {
  return new Command('waba')
    .description('WhatsApp Business Accounts of the tenants, with their phone numbers')
    .addCommand(addCommand())
    .addCommand(listCommand())
    .addCommand(setTokenCommand())
    .addCommand(setPaceCommand())
    .addCommand(setMarketingCommand())
    .addCommand(numberRemoveCommand());
}

function addCommand(): Command {
  const command = new Command('add')
    .description(
      'add a WABA with its numbers to a tenant, or update it; options that are not given change nothing',
    )
    .requiredOption('--tenant <tenantId>', 'whose it is')
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
  const token = accessToken === null ? await storedToken(tools, wabaId) : checkAccessToken(accessToken);
  const { openGraphClient } = await import('../../../platform/graph/graph-client.ts');
  const graph = openGraphClient(tools.config);
  try {
    return await graph.listPhoneNumbers(wabaId, token);
  } finally {
    await graph.close();
  }
}

async function storedToken(tools: AdminTools, wabaId: string): Promise<string> {
  await knownWaba(tools.database, wabaId);
  return await openAccessToken(tools, wabaId).catch((error: unknown) => {
    if (!(error instanceof AccessTokenProblem)) throw error;
    throw new RequestError(
      'no_access_token',
      `There is no access token to ask the upstream platform with; add --access-token-stdin. ${error.message}`,
    );
  });
}

function describeSaved(waba: SavedWaba): AdminOutcome {
  const notes: string[] = [];
  if (waba.phoneNumbers.length === 0) {
    notes.push(
      'the WABA has no phone number yet: webhooks for its numbers are stored, but create no events.',
    );
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
        'There are no WABAs yet; add one with: admin waba add --tenant <tenantId> --waba <id>',
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

/** Reads one `--number <phoneNumberId>[:<display number>[:<verified name>]]`; the name may contain colons. */
export function parsePhoneNumber(text: string, earlier: GivenPhoneNumber[] = []): GivenPhoneNumber[] {
  const [, phoneNumberId, displayPhoneNumber, verifiedName] =
    /^(\d{1,64})(?::([^:]*)(?::(.*))?)?$/s.exec(text) ?? [];
  if (phoneNumberId === undefined) {
    throw new InvalidArgumentError('Write it as <phoneNumberId>[:<display number>[:<verified name>]].');
  }
  return [
    ...earlier,
    {
      phoneNumberId,
      ...(displayPhoneNumber && { displayPhoneNumber }),
      ...(verifiedName && { verifiedName }),
    },
  ];
}

type AccessTokenOptions = { accessToken?: string; accessTokenStdin?: boolean };

function withAccessToken(command: Command): Command {
  return command
    .addOption(new Option('--access-token-stdin', 'read the upstream access token from standard input'))
    .addOption(
      new Option(
        '--access-token <token>',
        'the upstream access token; other users of this machine can see it while the command runs',
      ).conflicts('accessTokenStdin'),
    );
}

async function givenAccessToken(options: AccessTokenOptions): Promise<string | null> {
  if (options.accessTokenStdin !== true) return options.accessToken ?? null;
  return await readStdin();
}

function setPaceCommand(): Command {
  const command = new Command('set-pace')
    .description(
      'how many messages may leave one phone number per second; others use HELIOGRAPH_SEND_MESSAGES_PER_SECOND, or the rate that upstream allows',
    )
    .argument('<phoneNumberId>')
    .requiredOption('--per-second <number>', '1 to 1000; "default" goes back to that');
  const example = 'waba set-pace 800000000000111 --per-second 20';
  return adminAction<{ perSecond: string }>(command, example, async ({ tools, args, options }) => {
    const [phoneNumberId = ''] = args;
    const { perSecond } = options;
    if (!/^(default|\d{1,6})$/.test(perSecond)) {
      throw invalidValue('Give --per-second a whole number, or "default".');
    }
    const messagesPerSecond = perSecond === 'default' ? null : Number(perSecond);
    const wabaId = await wabaOfNumber(tools.database, phoneNumberId);
    await setNumberPace(tools, wabaId, { phoneNumberId, messagesPerSecond });
    const paces = await listNumberPaces(tools.database, wabaId);
    const known = paces.find((one) => one.phoneNumberId === phoneNumberId);
    const pace = known === undefined ? null : paceOfNumber(known, tools.config.sending.messagesPerSecond);
    return {
      json: { wabaId, phoneNumberId, messagesPerSecond },
      text: `Up to ${pace} messages per second leave ${phoneNumberId}${messagesPerSecond === null ? ' (the default)' : ''}.`,
    };
  });
}

function setMarketingCommand(): Command {
  const command = new Command('set-marketing')
    .description(
      'which call of upstream the marketing templates of one phone number go to: auto (marketing_messages, and messages where upstream refuses them there), always (marketing_messages) or never (messages)',
    )
    .argument('<phoneNumberId>')
    .addOption(
      new Option('--route <route>', 'auto, always or never').choices(MARKETING_ROUTES).makeOptionMandatory(),
    );
  const example = 'waba set-marketing 800000000000111 --route never';
  return adminAction<{ route: string }>(command, example, async ({ tools, args, options: { route } }) => {
    const [phoneNumberId = ''] = args;
    const wabaId = await wabaOfNumber(tools.database, phoneNumberId);
    await setMarketingRoute(tools, wabaId, { phoneNumberId, route });
    return {
      json: { wabaId, phoneNumberId, route },
      text: `The route of marketing templates of ${phoneNumberId} is ${route}.`,
    };
  });
}

function numberRemoveCommand(): Command {
  const command = new Command('remove-number')
    .description(
      'remove a number from a WABA, even if upstream still lists it; "waba add --number" adds it again',
    )
    .argument('<wabaId>')
    .argument('<phoneNumberId>');
  const example = 'waba remove-number 900000000000101 800000000000112';
  return adminAction(command, example, async ({ tools, args }) => {
    const [wabaId = '', phoneNumberId = ''] = args;
    await removeNumber(tools, wabaId, phoneNumberId);
    return {
      json: { wabaId, phoneNumberId, removed: true },
      text: `Phone number ${phoneNumberId} is removed from WABA ${wabaId}; its history is kept.`,
    };
  });
}
