import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { servedType } from '../../../../src/features/messages/media/media-type.ts';

const latin1 = (text: string) => Buffer.from(text, 'latin1');
const JPEG = latin1('\xff\xd8\xff\xe0\x00\x10JFIF');
const PNG = latin1('\x89PNG\r\n\x1a\n\0\0\0\rIHDR');
const WEBP = latin1('RIFF\x24\0\0\0WEBPVP8 ');
const OGG = latin1('OggS\0\x02');
const MP4 = latin1('\0\0\0\x20ftypisom');
const PDF = latin1('%PDF-1.7\n');
const ZIP = latin1('PK\x03\x04\x14\0');
const OLD_OFFICE = latin1('\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1');
const HTML = latin1('<!doctype html><script>alert(1)</script>');
const SVG = latin1('<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>');

describe('the content type that a file is served with', () => {
  test.each([
    ['image/jpeg', JPEG, 'image/jpeg'],
    ['image/png', PNG, 'image/png'],
    ['image/webp', WEBP, 'image/webp'],
    ['image/gif', latin1('GIF89a'), 'image/gif'],
    ['audio/ogg; codecs=opus', OGG, 'audio/ogg; codecs=opus'],
    ['audio/mpeg', latin1('ID3\x04'), 'audio/mpeg'],
    ['audio/mpeg', latin1('\xff\xfb\x90\x00'), 'audio/mpeg'],
    ['audio/aac', latin1('\xff\xf1\x50\x80'), 'audio/aac'],
    ['audio/amr', latin1('#!AMR\n'), 'audio/amr'],
    ['audio/mp4', MP4, 'audio/mp4'],
    ['video/mp4', MP4, 'video/mp4'],
    ['video/3gpp', latin1('\0\0\0\x18ftyp3gp4'), 'video/3gpp'],
    ['application/pdf', PDF, 'application/pdf'],
    [
      'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
      ZIP,
      'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
    ],
    ['application/msword', OLD_OFFICE, 'application/msword'],
  ])('%s that is one stays so', (declared, head, expected) => {
    expect(servedType(declared, head)).toBe(expected);
  });

  test.each([
    ['HTML declared as an image', 'image/jpeg', HTML],
    ['HTML declared as HTML', 'text/html', HTML],
    ['SVG declared as SVG', 'image/svg+xml', SVG],
    ['SVG declared as PNG', 'image/png', SVG],
    ['XML', 'application/xml', latin1('<?xml version="1.0"?>')],
    ['plain text', 'text/plain', latin1('hello')],
    ['an archive declared as HTML', 'text/html', ZIP],
    ['old office bytes declared as an image', 'image/png', OLD_OFFICE],
    ['an empty file', 'image/png', Buffer.alloc(0)],
    ['script declared as script', 'text/javascript', latin1('alert(1)')],
  ])('%s is served as unknown bytes', (_name, declared, head) => {
    expect(servedType(declared, head)).toBe('application/octet-stream');
  });

  test('what the bytes prove goes before what was declared', () => {
    expect(servedType('text/html', PNG)).toBe('image/png');
    expect(servedType(null, PDF)).toBe('application/pdf');
    expect(servedType('image/jpeg\r\nX-Evil: 1', JPEG)).toBe('image/jpeg');
  });

  test('whatever is declared and sent, the type is a harmless one and a valid header', () => {
    const SAFE =
      /^(?:application\/(?:octet-stream|pdf|zip|msword|epub|x-zip|vnd\.)|image\/(?:jpeg|png|gif|webp|heic)|audio\/|video\/)/;
    const declared = fc.oneof(
      fc.string(),
      fc.constantFrom('text/html', 'image/svg+xml', 'application/xhtml+xml'),
    );
    const head = fc.oneof(
      fc.uint8Array({ maxLength: 80 }),
      fc.constantFrom<Uint8Array>(HTML, SVG, JPEG, MP4, OGG, ZIP, WEBP, PDF),
    );
    fc.assert(
      fc.property(declared, head, (type, bytes) => {
        expect(servedType(type, bytes)).toMatch(SAFE);
        expect(servedType(type, bytes)).toMatch(/^[\x20-\x7e]+$/);
      }),
    );
  });
});
