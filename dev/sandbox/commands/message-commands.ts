import { fileURLToPath } from 'node:url';
import { Command, InvalidArgumentError } from 'commander';
import { DEMO_PHONE_NUMBER_ID } from '../demo-accounts.ts';
import { type MediaFile, readMediaFile } from './media-file.ts';
import { type CommandEnvironment, sandboxAction, webhookOutcome } from './sandbox-action.ts';
import { type SandboxClient, SandboxCommandError } from './sandbox-client.ts';

/** Options for sender and recipient. */
type SenderOptions = { from?: string; name?: string; phone?: string; group?: string };
type MediaOptions = SenderOptions & { caption?: string };
type OrderOptions = SenderOptions & { catalog?: string; item?: CartItemOption[] };
type CartItemOption = { retailerId: string; quantity: number; itemPrice: number; currency: string };

const MEDIA_TYPES = ['image', 'video', 'audio', 'document', 'sticker'] as const;
type MediaType = (typeof MEDIA_TYPES)[number];

function withSender(command: Command): Command {
  return command
    .option('--from <digits>', 'phone number of the customer')
    .option('--name <name>', 'name of the customer')
    .option('--group <id>', 'write in this group')
    .option('--phone <id>', `phone number id of the business, ${DEMO_PHONE_NUMBER_ID} unless given`);
}

function senderFields({ from, name, phone, group }: SenderOptions): Record<string, string> {
  return {
    ...(from === undefined ? {} : { from: from.replace(/\D/g, '') }),
    ...(name === undefined ? {} : { name }),
    ...(group === undefined ? {} : { groupId: group }),
    ...(phone === undefined ? {} : { phoneNumberId: phone }),
  };
}

function messageCommand(environment: CommandEnvironment): Command {
  const command = withSender(new Command('message').description('send a text message to the business'));
  command.argument('<text>', 'what the customer writes');
  const example = 'message "hello" --from 12025550143 --name "Asha Tester"';
  return sandboxAction<SenderOptions>(command, environment, example, async ({ client, args, options }) => {
    const body = args.join(' ');
    const answer = await client.post('/sandbox/inbound', { type: 'text', body, ...senderFields(options) });
    return webhookOutcome('text message', answer);
  });
}

async function storeMedia(client: SandboxClient, file: MediaFile): Promise<string> {
  const path = `/sandbox/media?filename=${encodeURIComponent(file.filename)}`;
  const { id } = await client.postBytes(path, file.bytes, file.mimeType);
  if (typeof id !== 'string') {
    throw new SandboxCommandError(
      'unexpected_answer',
      'The sandbox did not say under which id it keeps the media.',
    );
  }
  return id;
}

/** Samples for commands without a file, those of the console. */
const SAMPLES: Readonly<Record<MediaType, string>> = {
  image: 'sandbox-sunset.jpg',
  video: 'sandbox-sunset.mp4',
  audio: 'sandbox-voice.ogg',
  document: 'sandbox-order-form.pdf',
  sticker: 'sandbox-sticker.webp',
};

function samplePath(asset: string): string {
  return fileURLToPath(new URL(`../../console/assets/${asset}`, import.meta.url));
}

function mediaCommand(type: MediaType, environment: CommandEnvironment): Command {
  const command = withSender(
    new Command(type).description(
      `send ${/^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`} file to the business`,
    ),
  );
  const sample = samplePath(SAMPLES[type]);
  command.argument('[file]', 'a sample unless given', sample);
  if (type !== 'audio' && type !== 'sticker') {
    command.option('--caption <text>', 'text below it');
  }
  const files = {
    image: 'photo.jpg',
    video: 'clip.mp4',
    audio: 'note.ogg',
    document: 'receipt.pdf',
    sticker: 'hi.webp',
  };
  const example = `${type} ${files[type]}`;
  return sandboxAction<MediaOptions>(command, environment, example, async ({ client, args, options }) => {
    const file = await readMediaFile(args[0] ?? sample);
    const mediaId = await storeMedia(client, file);
    const caption = options.caption === undefined ? {} : { caption: options.caption };
    const request = { type, mediaId, ...caption, ...senderFields(options) };
    const answer = await client.post('/sandbox/inbound', request);
    const sizeBytes = file.bytes.length;
    return webhookOutcome(`${type} ${file.filename} (${file.mimeType}, ${sizeBytes} bytes)`, {
      ...answer,
      mediaId,
    });
  });
}

function parseItem(text: string, earlier: CartItemOption[] = []): CartItemOption[] {
  const parts = /^(.+):(\d{1,6}):(\d+(?:\.\d+)?):([A-Z]{3})$/.exec(text);
  const [, retailerId, quantity, itemPrice, currency] = parts ?? [];
  if (retailerId === undefined || currency === undefined || Number(quantity) < 1) {
    throw new InvalidArgumentError('Write it as <retailer id>:<quantity>:<price>:<currency>.');
  }
  return [...earlier, { retailerId, quantity: Number(quantity), itemPrice: Number(itemPrice), currency }];
}

function orderCommand(environment: CommandEnvironment): Command {
  const command = withSender(new Command('order').description('send a cart from the catalog'))
    .option('--catalog <id>', 'catalog id')
    .option('--item <retailer:quantity:price:currency>', 'a line of the cart; may be repeated', parseItem);
  const example = 'order --item sku-red-42:2:149.50:INR';
  return sandboxAction<OrderOptions>(command, environment, example, async ({ client, options }) => {
    const answer = await client.post('/sandbox/inbound', {
      type: 'order',
      ...(options.catalog === undefined ? {} : { catalogId: options.catalog }),
      ...(options.item === undefined ? {} : { items: options.item }),
      ...senderFields(options),
    });
    return webhookOutcome('order', answer);
  });
}

function anyTypeCommand(environment: CommandEnvironment): Command {
  const command = withSender(new Command('inbound').description('send a message of any type'))
    .argument(
      '<type>',
      'location, contacts, interactive, button, reaction, system, unsupported, edit, revoke, …',
    )
    .argument('[json]', 'members of the request, such as \'{"interactiveType":"list_reply"}\'');
  const example = `inbound interactive '{"interactiveType":"list_reply"}'`;
  return sandboxAction<SenderOptions>(command, environment, example, async ({ client, args, options }) => {
    const [type = '', json = '{}'] = args;
    let members: unknown;
    try {
      members = JSON.parse(json);
    } catch (error) {
      throw new SandboxCommandError('invalid_json', 'The second argument is not JSON.', { cause: error });
    }
    if (typeof members !== 'object' || members === null || Array.isArray(members)) {
      throw new SandboxCommandError('invalid_json', 'The second argument is not a JSON object.');
    }
    const answer = await client.post('/sandbox/inbound', { ...members, ...senderFields(options), type });
    return webhookOutcome(`${type} message`, answer);
  });
}

/** The commands that write to the business as a customer. */
export function messageCommands(environment: CommandEnvironment): Command[] {
  return [
    messageCommand(environment),
    ...MEDIA_TYPES.map((type) => mediaCommand(type, environment)),
    orderCommand(environment),
    anyTypeCommand(environment),
  ];
}
