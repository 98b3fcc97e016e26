import { crc32, deflateSync } from 'node:zlib';
import { Command, InvalidArgumentError } from 'commander';
import { type MediaFile, readMediaFile } from './media-file.ts';
import { type CommandEnvironment, sandboxAction, webhookOutcome } from './sandbox-action.ts';
import { type SandboxClient, SandboxCommandError } from './sandbox-client.ts';

/** Options for sender and recipient. */
type SenderOptions = { from?: string; name?: string; phone?: string };
type MediaOptions = SenderOptions & { caption?: string };
type OrderOptions = SenderOptions & { catalog?: string; item?: CartItemOption[] };
type CartItemOption = { retailerId: string; quantity: number; itemPrice: number; currency: string };

const MEDIA_TYPES = ['image', 'video', 'audio', 'document', 'sticker'] as const;

function withSender(command: Command): Command {
  return command
    .option('--from <digits>', 'phone number of the customer')
    .option('--name <name>', 'name of the customer')
    .option('--phone <id>', 'phone number id of the business, such as 800000000000111');
}

function senderFields({ from, name, phone }: SenderOptions): Record<string, string> {
  return {
    ...(from === undefined ? {} : { from: from.replace(/\D/g, '') }),
    ...(name === undefined ? {} : { name }),
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

async function mediaFileOf(path: string | undefined): Promise<MediaFile> {
  return path === undefined
    ? { bytes: builtInPicture(), mimeType: 'image/png', filename: 'sunset.png' }
    : readMediaFile(path);
}

function mediaCommand(type: (typeof MEDIA_TYPES)[number], environment: CommandEnvironment): Command {
  const command = withSender(
    new Command(type).description(
      `send ${/^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`} file to the business`,
    ),
  );
  const hasPicture = type === 'image';
  command.argument(
    hasPicture ? '[file]' : '<file>',
    hasPicture ? 'a built-in picture unless given' : 'the file',
  );
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
    const file = await mediaFileOf(args[0]);
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

const WIDTH_PIXELS = 320;
const HEIGHT_PIXELS = 200;

function pngChunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, checksum]);
}

/** One row: the filter byte 0, then red, green and blue of every pixel of a sunset. */
function pixelRow(y: number): Buffer {
  const row = Buffer.alloc(1 + WIDTH_PIXELS * 3);
  for (let x = 0; x < WIDTH_PIXELS; x += 1) {
    const isSun = (x - WIDTH_PIXELS / 2) ** 2 + (y - 120) ** 2 < 45 ** 2 && y < 140;
    const sky = [250 - y / 2, 120 + y / 3, 90 + x / 4];
    const sea = [20, 60 + (y - 140) / 2, 120 + x / 8];
    const color = isSun ? [255, 225, 120] : y < 140 ? sky : sea;
    color.forEach((value, channel) => {
      row.writeUInt8(Math.round(value), 1 + x * 3 + channel);
    });
  }
  return row;
}

/** A small picture as a valid PNG file, for `image` without a file. */
export function builtInPicture(): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(WIDTH_PIXELS, 0);
  header.writeUInt32BE(HEIGHT_PIXELS, 4);
  // 8 bits per channel, colour type 2 (RGB), then the only compression, filter and no interlacing.
  header.set([8, 2, 0, 0, 0], 8);
  const pixels = Buffer.concat(Array.from({ length: HEIGHT_PIXELS }, (_, y) => pixelRow(y)));
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    pngChunk('IHDR', header),
    pngChunk('IDAT', deflateSync(pixels)),
    pngChunk('IEND', Buffer.alloc(0)),
  ]);
}
