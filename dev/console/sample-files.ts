import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Type } from 'typebox';
import { PAGES } from '../../src/api/portal/access/page-access.ts';
import { createAssetUrls } from '../../src/api/portal/asset-urls.ts';
import type { PortalApp } from '../../src/api/portal/portal-app.ts';
import type { IconName } from './icons.ts';

const DIRECTORY = new URL('./assets/', import.meta.url);
const PREFIX = '/portal/sandbox/assets/';

/** The URL of a file of the console. Throws for an unknown name. */
export const consoleAssetUrl = createAssetUrls(DIRECTORY, PREFIX);

/** GET /portal/sandbox/assets/:name, for as long as the portal's own files. */
export function consoleAssets(app: PortalApp): void {
  const schema = { params: Type.Object({ name: Type.String() }) };
  app.get(`${PREFIX}:name`, { config: PAGES.open, schema }, async (request, reply) =>
    reply.sendFile(request.params.name, fileURLToPath(DIRECTORY)),
  );
}

/** A sample file that a customer can send. */
export type SampleFile = {
  /** Its file name. */
  asset: string;
  label: string;
  messageType: 'image' | 'video' | 'audio' | 'document' | 'sticker';
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
    asset: 'sandbox-sunset.mp4',
    label: 'Video',
    messageType: 'video',
    mimeType: 'video/mp4',
    filename: 'sunset.mp4',
    sign: 'film',
  },
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
  return await readFile(new URL(asset, DIRECTORY));
}
