import { crc32, deflateSync } from 'node:zlib';

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
