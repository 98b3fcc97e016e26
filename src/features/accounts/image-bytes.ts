/** The kinds of pictures that a logo may be; SVG is none, because it can hold scripts. */
export type PictureType = 'image/png' | 'image/jpeg' | 'image/webp';

export type Picture = { type: PictureType; width: number; height: number };

/** What a picture is by its bytes, whatever it was called; null: none of these kinds, or cut off. Nothing is decoded. */
export function pictureOf(bytes: Buffer): Picture | null {
  const size = sizeOf(bytes);
  return size !== null && size.width > 0 && size.height > 0 ? size : null;
}

function sizeOf(bytes: Buffer): Picture | null {
  if (bytes.length < 30) return null;
  if (bytes.subarray(0, 8).equals(PNG)) return pngSize(bytes);
  if (bytes.readUInt16BE(0) === 0xffd8) return jpegSize(bytes);
  const isWebp = bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP';
  return isWebp ? webpSize(bytes) : null;
}

const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

function pngSize(bytes: Buffer): Picture | null {
  const isWhole = bytes.toString('latin1', 12, 16) === 'IHDR' && bytes.includes('IEND', 16, 'latin1');
  return isWhole
    ? { type: 'image/png', width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }
    : null;
}

/** The markers of frames: all SOFn but DHT, JPG and DAC. */
const NO_FRAMES = new Set([0xc4, 0xc8, 0xcc]);

function jpegSize(bytes: Buffer): Picture | null {
  let at = 2;
  while (at + 9 <= bytes.length && bytes[at] === 0xff) {
    const marker = bytes[at + 1] ?? 0;
    if (marker >= 0xc0 && marker <= 0xcf && !NO_FRAMES.has(marker)) {
      return { type: 'image/jpeg', height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) };
    }
    at += 2 + bytes.readUInt16BE(at + 2);
  }
  return null;
}

function webpSize(bytes: Buffer): Picture | null {
  const type = 'image/webp';
  switch (bytes.toString('latin1', 12, 16)) {
    case 'VP8 ':
      return { type, width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
    case 'VP8L': {
      const bits = bytes.readUInt32LE(21);
      return { type, width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
    }
    case 'VP8X':
      return { type, width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
    default:
      return null;
  }
}
