import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import type { AccountIdentity, ApiKey, MessageUsage } from '../../typescript/src/generated/types.gen.js';
import { apiKeyOf } from './account.ts';
import { makeApiClient } from './api-client.ts';
import { type Command, type Context, textOf } from './command.ts';
import { EXIT, wrongUsage } from './failure.ts';
import { readSecretFile } from './given-files.ts';
import { fields, printable, table } from './output.ts';
import { serviceUrl } from './service-url.ts';

const login: Command = {
  name: 'login',
  summary: 'store the URL of the service and an API key',
  details:
    'The key is checked first. It is stored in a file that only you can read (mode 0600), or with --keyring in the key ring of the desktop. Without a terminal, the key is read from standard input.',
  options: {
    keyring: {
      type: 'boolean',
      help: 'store the key in the key ring of Linux (secret-tool), macOS or Windows',
    },
  },
  examples: ['heliograph login --url https://gateway.example'],
  async run(context, _operands, values) {
    const url = await askUrl(context, textOf(values, 'url'));
    const keyFile = textOf(values, 'key-file');
    const given = keyFile === undefined ? await askKey(context) : readSecretFile(keyFile, 'key-file');
    const apiKey = apiKeyOf(given, 'What you gave');
    const api = makeApiClient({ url, apiKey });
    const identity = await api.call<AccountIdentity>('GET', '/me');
    const place = context.profile.save(api.account, values.keyring === true);
    if (context.isJson) context.output.json({ url, wabaId: identity.wabaId, storedIn: place });
    else
      context.output.line(
        `Logged in to ${url} for ${identity.businessName} (WABA ${identity.wabaId}). The key is in ${place}.`,
      );
    return EXIT.ok;
  },
};

async function askUrl(context: Context, given: string | undefined): Promise<string> {
  if (given !== undefined) return serviceUrl(given, '--url');
  const known = context.env.HELIOGRAPH_URL ?? context.profile.storedUrl();
  const question = `URL of the service${known === undefined ? '' : ` [${known}]`}: `;
  const reply = context.isInteractive ? await ask(context, question) : '';
  return serviceUrl(reply === '' ? (known ?? '') : reply, 'The URL');
}

async function askKey(context: Context): Promise<string> {
  if (context.isInteractive) return (await ask(context, 'API key (it is not shown): ', true)).trim();
  let text = '';
  for await (const piece of context.stdin) text += piece;
  return text.trim();
}

async function ask({ stdin }: Context, question: string, isHidden = false): Promise<string> {
  const mute = new Writable({ write: (_piece, _encoding, done) => done() });
  process.stderr.write(printable(question));
  const prompt = createInterface({ input: stdin, output: isHidden ? mute : process.stderr, terminal: true });
  const reply = await new Promise<string>((resolve) => {
    prompt.once('line', resolve);
    prompt.once('SIGINT', () => process.exit(EXIT.interrupted));
  });
  prompt.close();
  if (isHidden) process.stderr.write('\n');
  return reply.trim();
}

const logout: Command = {
  name: 'logout',
  isLocal: true,
  summary: 'forget the API key and where sessions of listen were',
  details: 'The key stays valid. An operator, or you in the portal, can revoke it.',
  async run({ profile, output }) {
    const wasStored = profile.remove();
    output.line(
      wasStored ? 'Logged out. The key stays valid until it is revoked.' : 'You were not logged in.',
    );
    return EXIT.ok;
  },
};

const whoami: Command = {
  name: 'whoami',
  summary: 'show the account, the phone numbers and the API key',
  async run({ api, output, isJson, profile }) {
    const client = api();
    const [identity, key] = await Promise.all([
      client.call<AccountIdentity>('GET', '/me'),
      client.call<ApiKey>('GET', '/api/external/key'),
    ]);
    const openFile = profile.openFile();
    if (openFile !== null)
      output.note(`Warning: other users can read ${openFile}. Run: chmod 600 ${openFile}`);
    if (isJson) output.json({ url: client.account.url, identity, key });
    else {
      output.line(
        fields([
          ['service', client.account.url],
          ['business', identity.businessName],
          ['WABA', identity.wabaId],
          ...identity.phoneNumbers.map(
            (one) => ['number', `${one.phoneNumberId}  ${one.displayPhoneNumber}`] as const,
          ),
          ['key', `${key.prefix}…${key.lastFour}  ${key.name}`],
          ['scopes', key.scopes.join(', ')],
          ['expires', key.expiresAt ?? 'never'],
        ]),
      );
    }
    return EXIT.ok;
  },
};

const GROUPS = {
  number: 'phoneNumberId',
  category: 'category',
  type: 'pricingType',
  country: 'country',
} as const;
const COUNTS = ['sent', 'delivered', 'read', 'failed', 'billable', 'received'] as const;

const usage: Command = {
  name: 'usage',
  summary: 'count messages by day',
  details: 'Days are in UTC. Costs are the amounts that upstream reports; its invoice has the last word.',
  options: {
    from: { type: 'string', value: '<day>', help: 'first day, 29 days before the last unless set' },
    to: { type: 'string', value: '<day>', help: 'last day, today unless set' },
    monthly: { type: 'boolean', help: 'count by month' },
    by: {
      type: 'string',
      value: '<group>',
      help: `also by ${Object.keys(GROUPS).join(', ')}`,
      choices: Object.keys(GROUPS),
    },
  },
  examples: ['heliograph usage --from 2026-11-01 --by category'],
  async run({ api, output, isJson }, _operands, values) {
    const group = textOf(values, 'by');
    const by = Object.entries(GROUPS).find(([name]) => name === group)?.[1];
    if (group !== undefined && by === undefined)
      throw wrongUsage(`--by takes ${Object.keys(GROUPS).join(', ')}, not ${JSON.stringify(group)}.`);
    const query = {
      from: textOf(values, 'from'),
      to: textOf(values, 'to'),
      granularity: values.monthly === true ? 'month' : undefined,
      groupBy: by,
    };
    const counted = await api().call<MessageUsage>('GET', '/api/external/usage/messages', { query });
    if (isJson) output.json(counted);
    else if (counted.rows.length === 0) output.note('No messages were counted.');
    else {
      const rows = counted.rows.map((row) => [
        row.day,
        ...(by === undefined ? [] : [row[by] ?? 'not reported']),
        ...COUNTS.map((name) => String(row[name])),
        row.cost === null ? '' : printable(`${row.cost.amount} ${row.cost.currency ?? ''}`.trim()),
      ]);
      const grouped = group === undefined ? [] : [group.toUpperCase()];
      output.line(table(['DAY', ...grouped, ...COUNTS.map((name) => name.toUpperCase()), 'COST'], rows));
    }
    if (!counted.isFinal) output.note('Late statuses can still change these counts.');
    return EXIT.ok;
  },
};

export const ACCOUNT_COMMANDS: readonly Command[] = [login, logout, whoami, usage];
