import { deflateSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkAccent, darkAccent } from '../../../src/features/accounts/accent-colour.ts';
import { pictureOf } from '../../../src/features/accounts/image-bytes.ts';

test.each([
  ['#ffffff', '1.00'],
  ['#ffd400', '1.43'],
  ['#767677', null],
  ['#777777', '4.47'],
  ['#1d4f8f', null],
  ['#000000', null],
])('%s has the contrast %s with white; null: it may be the accent', (colour, contrast) => {
  if (contrast === null) expect(checkAccent(colour.toUpperCase())).toBe(colour);
  else expect(() => checkAccent(colour)).toThrow(`a contrast of ${contrast}:1; it needs 4.5:1`);
});

test.each(['', 'red', '#fff', '#12345g', 'rgb(0,0,0)', '#000000;}body{display:none', ' #000000'])(
  '%j is no colour',
  (text) => {
    expect(() => checkAccent(text)).toThrow('must be a colour such as #1d4f8f');
  },
);

test('the colour for dark pages carries white text too, whatever the accent is', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 0xffffff }), (value) => {
      const colour = `#${value.toString(16).padStart(6, '0')}`;
      try {
        checkAccent(colour);
      } catch {
        return;
      }
      expect(checkAccent(darkAccent(colour))).toMatch(/^#[0-9a-f]{6}$/);
    }),
    { numRuns: 2_000 },
  );
});

/** A chunk of a PNG without its checksum, which nothing of ours reads. */
function chunk(kind: string, data: Buffer): Buffer {
  const size = Buffer.alloc(4);
  size.writeUInt32BE(data.length);
  return Buffer.concat([size, Buffer.from(kind, 'latin1'), data, Buffer.alloc(4)]);
}

function png(width: number, height: number): Buffer {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head[8] = 8;
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([
    signature,
    chunk('IHDR', head),
    chunk('IDAT', deflateSync(Buffer.alloc(4))),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

const JPEG = Buffer.from(
  'ffd8ffe000104a46494600010100000100010000ffdb004300ffc0000b080020003001011100ffd9'.padEnd(80, '0'),
  'hex',
);

const webp = (kind: string, rest: string) =>
  Buffer.concat([
    Buffer.from('RIFF\0\0\0\0WEBP', 'latin1'),
    Buffer.from(kind, 'latin1'),
    Buffer.from(rest.padEnd(40, '0'), 'hex'),
  ]);

test('a picture is known by its bytes, with its size', () => {
  expect(pictureOf(png(640, 120))).toEqual({ type: 'image/png', width: 640, height: 120 });
  expect(pictureOf(webp('VP8X', '0a00000000000000ff0100770000'))).toEqual({
    type: 'image/webp',
    width: 512,
    height: 120,
  });
  const [start, frame] = [JPEG.subarray(0, 20), Buffer.from('ffc0000b0800780280010111000000000000', 'hex')];
  expect(pictureOf(Buffer.concat([start, frame]))).toEqual({ type: 'image/jpeg', width: 640, height: 120 });
});

test('SVG, HTML, GIF, what is cut off and what has no size are no pictures', () => {
  const texts = [
    '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
    '<!doctype html><script>alert(1)</script>............',
    'GIF89a\x01\x00\x01\x00...............................',
    '',
  ];
  for (const text of texts) expect([text, pictureOf(Buffer.from(text, 'latin1'))]).toEqual([text, null]);
  const whole = png(64, 64);
  expect(pictureOf(whole.subarray(0, whole.length - 12))).toBeNull();
  expect(pictureOf(png(0, 64))).toBeNull();
});

test('no bytes whatever make the look at a picture throw', () => {
  const heads = [
    Buffer.from([0xff, 0xd8]),
    png(1, 1).subarray(0, 16),
    webp('VP8L', '').subarray(0, 16),
    webp('VP8 ', '').subarray(0, 16),
    webp('VP8X', '').subarray(0, 16),
  ];
  fc.assert(
    fc.property(fc.constantFrom(...heads), fc.uint8Array({ maxLength: 200 }), (head, rest) => {
      const found = pictureOf(Buffer.concat([head, rest]));
      expect(found === null || (found.width > 0 && found.height > 0)).toBe(true);
    }),
    { numRuns: 3_000 },
  );
});
