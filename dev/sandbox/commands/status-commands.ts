import { Argument, Command, InvalidArgumentError } from 'commander';
import { KNOWN_FIELDS } from '../../../src/platform/upstream-fields.ts';
import { DEMO_PHONE_NUMBER_ID } from '../demo-accounts.ts';
import { type CommandEnvironment, sandboxAction, webhookOutcome } from './sandbox-action.ts';
import { SandboxCommandError } from './sandbox-client.ts';

type PaymentOptions = { reference?: string; amount?: number; refund?: number; phone?: string; from?: string };
type FieldOptions = { phone?: string };
type StatusOptions = { phone?: string; to?: string; code?: number };

/** Minor units of a decimal amount, without going through a binary fraction. */
function parseAmount(text: string): number {
  const [, whole, fraction = ''] = /^(\d{1,10})(?:\.(\d{1,2}))?$/.exec(text) ?? [];
  if (whole === undefined) {
    throw new InvalidArgumentError('Write an amount as 210 or 210.50.');
  }
  return Number(whole) * 100 + Number(fraction.padEnd(2, '0'));
}

function parseCode(text: string): number {
  if (!/^\d{1,9}$/.test(text)) {
    throw new InvalidArgumentError('An error code is a whole number, such as 131026.');
  }
  return Number(text);
}

function paymentCommand(environment: CommandEnvironment): Command {
  const command = new Command('payment')
    .description('report a payment of a customer (in INR)')
    .addArgument(new Argument('<state>', 'how far it is').choices(['pending', 'captured', 'refund']))
    .option('--reference <id>', 'reference id of the order; the same one for pending, captured and refund')
    .option('--amount <amount>', 'decimal amount, such as 210.50', parseAmount)
    .option('--refund <amount>', 'refunded decimal amount', parseAmount)
    .option('--from <digits>', 'phone number of the customer')
    .option('--phone <id>', `phone number id of the business, ${DEMO_PHONE_NUMBER_ID} unless given`);
  const example = 'payment captured --reference ord-1001 --amount 210.00';
  return sandboxAction<PaymentOptions>(command, environment, example, async ({ client, args, options }) => {
    const answer = await client.post('/sandbox/inbound', {
      type: 'payment',
      status: args[0],
      ...(options.reference === undefined ? {} : { referenceId: options.reference }),
      ...(options.amount === undefined ? {} : { amountValue: options.amount }),
      ...(options.refund === undefined ? {} : { refundValue: options.refund }),
      ...(options.from === undefined ? {} : { from: options.from }),
      ...(options.phone === undefined ? {} : { phoneNumberId: options.phone }),
    });
    return webhookOutcome(`payment ${args[0]}`, answer);
  });
}

function statusCommand(environment: CommandEnvironment): Command {
  const command = new Command('status')
    .description('report the status of a message that the business sent')
    .argument('<wamid>', 'upstream id of the message')
    .argument('<status>', 'sent, delivered, read, played or failed')
    .option('--to <digits>', 'phone number of the recipient', '12025550143')
    .option('--code <number>', 'upstream error code, for failed', parseCode)
    .option('--phone <id>', `phone number id of the business, ${DEMO_PHONE_NUMBER_ID} unless given`);
  const example = 'status wamid.HBgLMTIwMjU1NTAxNDMVAgARGBI3MTE0MzBGNjE2NEU5MzgwM0QA delivered';
  return sandboxAction<StatusOptions>(command, environment, example, async ({ client, args, options }) => {
    const [id, status] = args;
    const answer = await client.post('/sandbox/inbound', {
      type: 'status',
      id,
      status,
      recipientId: options.to,
      ...(options.code === undefined ? {} : { errorCode: options.code }),
      ...(options.phone === undefined ? {} : { phoneNumberId: options.phone }),
    });
    return webhookOutcome(`status ${status}`, answer);
  });
}

function fieldCommand(environment: CommandEnvironment): Command {
  const command = new Command('field')
    .description('report a change in another webhook field than messages')
    .argument('<field>', `${KNOWN_FIELDS.join(', ')}, or any other with a value`)
    .argument('[value]', 'what is reported, as JSON; for the fields above the example of the event catalogue')
    .option('--phone <id>', `phone number id of the business, ${DEMO_PHONE_NUMBER_ID} unless given`);
  const example = 'field message_template_status_update';
  return sandboxAction<FieldOptions>(command, environment, example, async ({ client, args, options }) => {
    const [field, value] = args;
    const answer = await client.post('/sandbox/fields', {
      field,
      ...(value === undefined ? {} : { value: parseValue(value) }),
      ...(options.phone === undefined ? {} : { phoneNumberId: options.phone }),
    });
    return webhookOutcome(`a change in ${field}`, answer);
  });
}

function parseValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new SandboxCommandError('invalid_json', 'The value is not JSON.', { cause: error });
  }
}

/** The commands that report on messages, payments and the account as the platform. */
export function statusCommands(environment: CommandEnvironment): Command[] {
  return [paymentCommand(environment), statusCommand(environment), fieldCommand(environment)];
}
