import { readFile } from 'node:fs/promises';
import { ASSET_DIRECTORY } from '../../api/portal/asset-urls.ts';
import type { IconName } from './icons.ts';

/** A file of ours that a customer can send without having one at hand. */
export type SampleFile = {
  /** Its name in `assets`. */
  asset: string;
  label: string;
  messageType: 'image' | 'audio' | 'document' | 'sticker';
  mimeType: string;
  filename: string;
  sign: IconName;
};

/** The pictures to choose from. */
export const SAMPLE_PICTURES: readonly SampleFile[] = [
  picture('shoe', 'Shoe'),
  picture('coffee', 'Coffee'),
  picture('receipt', 'Receipt'),
  picture('sunset', 'Sunset'),
];

/** Files of other types. */
export const SAMPLE_FILES: readonly SampleFile[] = [
  {
    asset: 'sandbox-voice.ogg',
    label: 'Voice note',
    messageType: 'audio',
    mimeType: 'audio/ogg; codecs=opus',
    filename: 'voice.ogg',
    sign: 'voice',
  },
  {
    asset: 'sandbox-order-form.pdf',
    label: 'Document',
    messageType: 'document',
    mimeType: 'application/pdf',
    filename: 'order-form.pdf',
    sign: 'file',
  },
  {
    asset: 'sandbox-sticker.webp',
    label: 'Sticker',
    messageType: 'sticker',
    mimeType: 'image/webp',
    filename: 'sticker.webp',
    sign: 'sticker',
  },
];

function picture(name: string, label: string): SampleFile {
  const asset = `sandbox-${name}.jpg`;
  return {
    asset,
    label,
    messageType: 'image',
    mimeType: 'image/jpeg',
    filename: `${name}.jpg`,
    sign: 'picture',
  };
}

/** The sample of this asset name; null when there is none. */
export function findSample(asset: string): SampleFile | null {
  return [...SAMPLE_PICTURES, ...SAMPLE_FILES].find((sample) => sample.asset === asset) ?? null;
}

/** Its bytes. */
export async function readSample({ asset }: SampleFile): Promise<Buffer> {
  return await readFile(new URL(asset, ASSET_DIRECTORY));
}
