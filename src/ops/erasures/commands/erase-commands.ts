import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Command } from 'commander';
import { userNamed } from '../../../features/users/users.ts';
import {
  type AdminOutcome,
  type AdminTools,
  adminAction,
  alignedFields,
  alignedTable,
} from '../../../platform/cli/admin-action.ts';
import { readNamedFile, readStdin } from '../../../platform/cli/given-text.ts';
import { parseEncryptionKeys } from '../../../platform/crypto/secret-box.ts';
import { openObjectStore } from '../../../platform/object-store/object-store.ts';
import { readPhoneNumber } from '../../../platform/phone-number.ts';
import { invalidValue } from '../../../platform/request-input.ts';
import { workflowUrl } from '../../../platform/temporal/client-connection.ts';
import { verifyReport } from '../erasure-report.ts';
import { erasureWorkflowId } from '../erasure-store.ts';
import {
  type CustomerName,
  type ErasureView,
  eraseConversation,
  eraseCustomer,
  eraseTenant,
  eraseUser,
  eraseWaba,
  erasureOf,
  erasuresOf,
} from '../erasures.ts';
import { exportCustomer } from '../export-customer.ts';

type Options = { waba: string; phone?: string; userId?: string; customer?: string; yes?: true };

type Erasing = {
  name: string;
  description: string;
  /** Behind `erase`, without the confirmation. */
  example: string;
  extend(command: Command): Command;
  /** The id of the subject that the argument names; the argument itself unless given. */
  find?(tools: AdminTools, named: string): Promise<string>;
  subject(id: string, options: Options): string;
  erase(tools: AdminTools, id: string, options: Options): Promise<ErasureView>;
};

const ERASURES: readonly Erasing[] = [
  {
    name: 'customer',
    description: 'a customer of a WABA, with all messages in both directions',
    example: 'customer --waba 900000000000101 --phone 12025550143',
    extend: (command) => withCustomerName(withWaba(command)),
    subject: (_, { waba }) => `The customer of WABA ${waba}`,
    erase: (tools, _, options) => eraseCustomer(tools, options.waba, customerOf(options)),
  },
  {
    name: 'conversation',
    description: 'a conversation; its customer too, unless they have another',
    example: 'conversation 42 --waba 900000000000101',
    extend: (command) => withWaba(command.argument('<id>')),
    subject: (id) => `Conversation ${id}`,
    erase: (tools, id, { waba }) => eraseConversation(tools, waba, id),
  },
  {
    name: 'waba',
    description: 'a WABA with its history, also one that was removed; another tenant can then add it',
    example: 'waba 900000000000101',
    extend: (command) => command.argument('<wabaId>'),
    subject: (id) => `WABA ${id} with its history`,
    erase: eraseWaba,
  },
  {
    name: 'tenant',
    description: 'a tenant with its WABAs and the users that belong nowhere else',
    example: 'tenant 3',
    extend: (command) => command.argument('<id>'),
    subject: (id) => `Tenant ${id} with its WABAs and their history`,
    erase: eraseTenant,
  },
  {
    name: 'user',
    description: 'a user of the portal; the audit log keeps their actions',
    example: 'user 7',
    extend: (command) => command.argument('<id or e-mail address>'),
    find: async (tools, named) => (await userNamed(tools, named)).id,
    subject: (id) => `User ${id}`,
    erase: (tools, id) => eraseUser(tools, { actor: tools.actor, tenantId: null, userId: null }, id),
  },
];

export function eraseCommand(): Command {
  const group = new Command('erase').description(
    'erase data permanently: rows, bodies, files; "erasures" shows the progress',
  );
  return ERASURES.reduce((command, erasing) => command.addCommand(commandOf(erasing)), group);
}

function commandOf({ name, description, example, extend, find, subject, erase }: Erasing): Command {
  const command = extend(new Command(name).description(description)).option('--yes', 'confirm the erasure');
  return adminAction<Options>(command, `erase ${example} --yes`, async ({ tools, args, options }) => {
    const [named = ''] = args;
    const id = find === undefined ? named : await find(tools, named);
    if (!options.yes)
      throw invalidValue(`${subject(id, options)} would be erased permanently: confirm with --yes.`);
    return describe(tools, await erase(tools, id, options));
  });
}

function withWaba(command: Command): Command {
  return command.requiredOption('--waba <id>', 'of which WABA');
}

function withCustomerName(command: Command): Command {
  return command
    .option('--phone <digits>', 'by phone number')
    .option('--user-id <id>', 'by business-scoped user id')
    .option('--customer <id>', 'by our id');
}

function customerOf({ phone, userId, customer }: Options): CustomerName {
  const given = [phone, userId, customer].filter((one) => one !== undefined);
  if (given.length !== 1) throw invalidValue('Name the customer by one of --phone, --user-id, --customer.');
  if (phone === undefined) return userId === undefined ? { customerId: customer ?? '' } : { userId };
  const digits = readPhoneNumber(phone);
  if (digits === null)
    throw invalidValue('--phone takes a phone number with its country code, such as +12025550143.');
  return { phone: digits };
}

export function exportCommand(): Command {
  const command = new Command('customer')
    .description('everything that is stored of a customer, as a zip archive')
    .requiredOption('--waba <id>', 'of which WABA')
    .requiredOption(
      '--output <file>',
      'where to write the archive; a file that is there is not replaced; - writes standard output',
    );
  const example = 'export customer --waba 900000000000101 --phone 12025550143 --output customer.zip';
  const withAction = adminAction<Options & { output: string }>(
    withCustomerName(command),
    example,
    async ({ tools, options }) => {
      const { waba: wabaId, output } = options;
      const isPrinted = output === '-';
      if (isPrinted && process.stdout.isTTY)
        throw invalidValue('Standard output is a terminal: add > customer.zip.');
      const objectStore = openObjectStore(tools.config.objectStore);
      try {
        const { archive } = await exportCustomer({ ...tools, objectStore }, wabaId, customerOf(options));
        if (isPrinted) await pipeline(archive, process.stdout, { end: false });
        else await writeNewFile(output, archive);
      } finally {
        objectStore.close();
      }
      return { json: { output }, text: `The archive is ${output}.`, isPrinted };
    },
  );
  return new Command('export').description('export data').addCommand(withAction);
}

/** Half an archive does not stay behind. */
async function writeNewFile(path: string, content: Readable): Promise<void> {
  try {
    await pipeline(content, createWriteStream(path, { flags: 'wx', mode: 0o600 }));
  } catch (error) {
    const { code = '', syscall } = error as NodeJS.ErrnoException;
    if (code !== 'EEXIST') await rm(path, { force: true });
    if (syscall === 'open')
      throw invalidValue(`The file ${path} cannot be made (${code}); - writes standard output.`);
    throw error;
  }
}

export function erasuresCommand(): Command {
  return new Command('erasures')
    .description('list erasures and print their signed reports')
    .addCommand(listCommand())
    .addCommand(showCommand())
    .addCommand(verifyCommand());
}

function listCommand(): Command {
  const command = new Command('list').description('list the newest erasures');
  return adminAction(command, 'erasures list', async ({ tools }) => {
    const erasures = await erasuresOf(tools, null);
    return {
      json: erasures,
      text: alignedTable(
        ['ID', 'KIND', 'SUBJECT', 'WABA', 'STATE', 'BY', 'REQUESTED', 'FINISHED'],
        erasures.map((one) => [
          ...[one.erasureId, one.kind, one.subjectId, one.wabaId, one.state],
          ...[one.requestedBy, one.createdAt, one.finishedAt],
        ]),
        'Nothing was erased yet.',
      ),
    };
  });
}

function showCommand(): Command {
  const command = new Command('show')
    .description('show the progress of an erasure; with --report its signed report only')
    .argument('<id>')
    .option('--report', 'print the report as JSON, for a file');
  return adminAction<{ report?: true }>(command, 'erasures show 7', async ({ tools, args, options }) => {
    const erasure = await erasureOf(tools, null, args[0] ?? '');
    if (!options.report) return describe(tools, erasure);
    const { report } = erasure;
    if (report === null) throw invalidValue(`Erasure ${erasure.erasureId} is not done.`);
    return { json: report, text: JSON.stringify(report, null, 2) };
  });
}

function verifyCommand(): Command {
  const command = new Command('verify')
    .description('check that this installation signed a report, and that nobody changed it')
    .argument('<id or file>', 'of an erasure, or a downloaded report; - reads standard input');
  return adminAction(command, 'erasures verify report.json', async ({ tools, args }) => {
    const [named = ''] = args;
    const document = /^\d+$/.test(named)
      ? (await erasureOf(tools, null, named)).report
      : parseReport(named === '-' ? await readStdin() : await readNamedFile(named));
    if (document === null) throw invalidValue(`Erasure ${named} is not done.`);
    const verdict = verifyReport(document, parseEncryptionKeys(tools.config.encryptionKeys));
    return { json: { verdict }, text: VERDICTS[verdict], found: verdict === 'valid' };
  });
}

const VERDICTS = {
  valid: 'valid: this installation signed the report, and it is unchanged',
  foreign:
    'foreign: the report is as it was signed, but by no encryption key of these settings: put the old key back to check it',
  invalid: 'invalid: the report or its signature was changed',
};

function parseReport(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalidValue('The file is no JSON.');
  }
}

function describe({ config }: AdminTools, erasure: ErasureView): AdminOutcome {
  const url = workflowUrl(config.temporal, erasureWorkflowId(erasure));
  return {
    json: { ...erasure, workflowUrl: url },
    text: alignedFields([
      ['id', erasure.erasureId],
      ['erases', `${erasure.kind} ${erasure.subjectId}`],
      ['WABA', erasure.wabaId],
      ['state', erasure.state],
      ['waits for', erasure.waitsFor],
      ['erased', Object.entries(erasure.counts).map(([name, count]) => `${name}: ${count}`)],
      ['refused', Object.entries(erasure.refused).map(([name, count]) => `${name}: ${count}`)],
      ['by', erasure.requestedBy],
      ['requested', erasure.createdAt],
      ['finished', erasure.finishedAt],
      ['workflow', url],
    ]),
  };
}
