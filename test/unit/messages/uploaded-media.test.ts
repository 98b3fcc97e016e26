import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { mediaUsesOf, withUpstreamMedia } from '../../../src/features/messages/send/message-content.ts';
import {
  essenceOf,
  maxBytesOf,
  mediaKindOf,
  SENDABLE_MIME_TYPES,
  uploadedFileName,
} from '../../../src/features/messages/send/uploaded-media.ts';
import { mediaUuidOf, publicMediaId, uuidV7 } from '../../../src/platform/public-ids.ts';
import { anyText } from '../../support/any-text.ts';

describe('an uploaded file', () => {
  test('is of the kind that upstream takes its MIME type for, parameters and case aside', () => {
    expect(mediaKindOf(essenceOf('Audio/OGG; codecs=opus'))).toBe('audio');
    expect(mediaKindOf(essenceOf('image/webp'))).toBe('sticker');
    for (const type of [
      '',
      'image/gif',
      'image/svg+xml',
      'text/html',
      'application/octet-stream',
      '__proto__',
    ]) {
      expect([type, mediaKindOf(essenceOf(type))]).toEqual([type, null]);
    }
    expect(SENDABLE_MIME_TYPES.every((type) => mediaKindOf(type) !== null)).toBe(true);
  });

  test('that is a sticker may be larger only when its header says that it moves', () => {
    const head = Buffer.from('RIFF....WEBPVP8X....\x02', 'latin1');
    expect(maxBytesOf('sticker', head)).toBe(500 * 1024);
    expect(maxBytesOf('sticker', head.subarray(0, 20))).toBe(100 * 1024);
    expect(maxBytesOf('sticker', Buffer.from('RIFF....WEBPVP8 ....\x02', 'latin1'))).toBe(100 * 1024);
    expect(maxBytesOf('image', head)).toBe(5 * 1024 * 1024);
  });

  test('whatever its name, keeps one that no header, path or terminal can be harmed by', () => {
    fc.assert(
      fc.property(anyText({ maxLength: 400 }), (given) => {
        const name = uploadedFileName(given);
        if (name === null) return;
        expect(name).not.toMatch(/[\p{C}"\\/<>]/u);
        expect(name.isWellFormed()).toBe(true);
        expect(name.length).toBeLessThanOrEqual(240);
      }),
    );
    expect(uploadedFileName(undefined)).toBeNull();
    const meant = [
      ['=?utf-8?B?Y2Fmw6kucGRm?=', 'café.pdf'],
      ['=?UTF-8?Q?caf=C3=A9_1.pdf?=', 'café 1.pdf'],
      ['=?iso-8859-1?Q?caf=E9.pdf?=', 'café.pdf'],
      ['=?utf-8?B?Y2Fm?= =?utf-8?B?w6kucGRm?=', 'café.pdf'],
      ['=?nonsense?B?Y2Fm?=', '=_nonsense_B_Y2Fm_='],
      ['caf%C3%A9%20du%20port.pdf', 'café du port.pdf'],
      ['a%22b%22.txt', 'a_b_.txt'],
      ['a%0D%0Ab.txt', 'ab.txt'],
      ['100%25.txt', '100%25.txt'],
      ['100% %E9.txt', '100% %E9.txt'],
      ['..%2F..%2Fetc%20passwd', 'etc passwd'],
      ['a"b.txt', 'a_b.txt'],
    ];
    expect(meant.map(([given = '']) => uploadedFileName(given))).toEqual(meant.map(([, name]) => name));
    expect(uploadedFileName(`${'a/'.repeat(1_000)}  ..photo.jpg  `)).toBe('photo.jpg');
  });
});

describe('the files of ours in a message', () => {
  const uuid = uuidV7(1_790_000_000_000);
  const id = publicMediaId(uuid);

  test('are found by their place: an id of ours elsewhere is none', () => {
    const message = {
      type: 'interactive',
      interactive: {
        header: { type: 'image', image: { id } },
        action: { buttons: [{ reply: { id } }], image: id, video: { link: id }, document: { id: '123' } },
      },
      sticker: { id: 'med_x' },
    };
    expect(mediaUsesOf(message)).toEqual([
      { param: 'interactive/header/image/id', kind: 'image', id, uuid },
      { param: 'sticker/id', kind: 'sticker', id: 'med_x', uuid: null },
    ]);
  });

  test('are replaced by upstream’s ids, and everything else stays', () => {
    const message = { image: { id, caption: id }, context: { id }, list: [{ video: { id } }] };
    const replaced = JSON.parse(withUpstreamMedia(JSON.stringify(message), new Map([[uuid, '42']])));
    expect(replaced).toEqual({
      image: { id: '42', caption: id },
      context: { id },
      list: [{ video: { id: '42' } }],
    });
    expect(() => withUpstreamMedia(JSON.stringify(message), new Map())).toThrow('image/id');
  });

  test('have ids that read back, and nothing else does', () => {
    expect(mediaUuidOf(id)).toBe(uuid);
    for (const text of ['', 'med_', id.toUpperCase(), `${id} `, id.replace('med', 'evt'), uuid]) {
      expect([text, mediaUuidOf(text)]).toEqual([text, null]);
    }
  });
});
