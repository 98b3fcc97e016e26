import type { FormFile } from './multipart-form.ts';
import { findSample, readSample } from './sample-files.ts';
import type { SandboxClient } from './sandbox-client.ts';

/** What a form of the phone asks for that cannot be done; the text is for the person. */
export class CustomerFormError extends Error {
  override name = 'CustomerFormError';
}

/** What stands in a form of the phone, checked for length. */
export type CustomerForm = { kind: string; text: string; file: FormFile | null };

/** Who writes to which number, as the sandbox takes it. */
export type Sender = { from: string; name: string; phoneNumberId: string };

const PLACE = {
  latitude: 52.520008,
  longitude: 13.404954,
  title: 'Sample Square',
  address: '1 Example Ave, Sampletown',
};

/**
 * The request to the sandbox for what a form asks. Stores files first.
 * Throws CustomerFormError when the form asks for nothing that can be sent.
 */
export async function customerMessage(
  client: SandboxClient,
  { kind, text, file }: CustomerForm,
  sender: Sender,
): Promise<Record<string, unknown>> {
  const [what = '', detail = ''] = kind.split(' ', 2);
  switch (what) {
    case 'text':
      if (text.trim() === '') throw new CustomerFormError('Write something first.');
      return { ...sender, type: 'text', body: text };
    case 'hello':
      return { ...sender, type: 'text', body: 'Hello!' };
    case 'sample':
      return await sampleMessage(client, detail, text, sender);
    case 'file':
      if (file === null) throw new CustomerFormError('Choose a file first.');
      return await fileMessage(client, file, text, sender);
    case 'location':
      return { ...sender, type: 'location', ...PLACE };
    case 'contacts':
    case 'order':
      return { ...sender, type: what };
    case 'payment':
      return { ...sender, ...payment(detail) };
    default:
      throw new CustomerFormError('The phone cannot send this.');
  }
}

async function sampleMessage(
  client: SandboxClient,
  asset: string,
  caption: string,
  sender: Sender,
): Promise<Record<string, unknown>> {
  const sample = findSample(asset);
  if (sample === null) throw new CustomerFormError('There is no such sample.');
  const { mimeType, filename, messageType } = sample;
  const mediaId = await client.storeMedia({ bytes: await readSample(sample), mimeType, filename });
  return { ...sender, type: messageType, mediaId, ...captionOf(messageType, caption) };
}

async function fileMessage(
  client: SandboxClient,
  file: FormFile,
  caption: string,
  sender: Sender,
): Promise<Record<string, unknown>> {
  const mimeType = /^[\w.+-]+\/[\w.+-]+$/.test(file.mimeType) ? file.mimeType : 'application/octet-stream';
  const filename = file.filename.slice(0, 240);
  const type = messageTypeOf(mimeType);
  const mediaId = await client.storeMedia({ bytes: file.bytes, mimeType, filename });
  return {
    ...sender,
    type,
    mediaId,
    ...(type === 'document' ? { filename } : {}),
    ...captionOf(type, caption),
  };
}

function messageTypeOf(mimeType: string): string {
  if (mimeType === 'image/webp') return 'sticker';
  const [group = ''] = mimeType.split('/');
  if (mimeType === 'image/jpeg' || mimeType === 'image/png') return 'image';
  return group === 'audio' || group === 'video' ? group : 'document';
}

function captionOf(type: string, caption: string): Record<string, string> {
  const mayHave = type !== 'audio' && type !== 'sticker' && caption.trim() !== '';
  return mayHave ? { caption } : {};
}

/** One reference for the three buttons, so that a refund is one of the payment that was captured before. */
function payment(state: string): Record<string, unknown> {
  if (!['pending', 'captured', 'refund'].includes(state)) {
    throw new CustomerFormError('There is no such state of a payment.');
  }
  return { type: 'payment', status: state, referenceId: 'ord-console-1' };
}
