import { validateHeaderValue } from 'node:http';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { contentDisposition } from '../../../../src/api/messages/received-media/received-media.ts';
import { anyText } from '../../../support/any-text.ts';

describe('Content-Disposition', () => {
  test.each([
    ['image/jpeg', 'inline'],
    ['audio/ogg; codecs=opus', 'inline'],
    ['video/mp4', 'inline'],
    ['application/pdf', 'inline'],
    ['image/svg+xml', 'attachment'],
    ['text/html', 'attachment'],
    ['application/xml', 'attachment'],
    ['application/octet-stream', 'attachment'],
    ['application/pdfx', 'attachment'],
  ])('%s is %s', (type, kind) => {
    expect(contentDisposition(type, 'a.bin')).toBe(`${kind}; filename="a.bin"`);
  });

  test('a name that is not ASCII is given twice', () => {
    expect(contentDisposition('application/pdf', 'naïve “plan” 見積.pdf')).toBe(
      `inline; filename="na_ve _plan_ __.pdf"; filename*=UTF-8''na%C3%AFve%20%E2%80%9Cplan%E2%80%9D%20%E8%A6%8B%E7%A9%8D.pdf`,
    );
  });

  test.each([
    ['a path', '../../etc/passwd', 'filename="_.._etc_passwd"'],
    ['a Windows path', 'C:\\temp\\x.exe', 'filename="C__temp_x.exe"'],
    ['quotes and parameters', 'x"; filename=evil.html; a="', 'filename="x__ filename=evil.html_ a=_"'],
    ['header injection', 'x\r\nSet-Cookie: a=b', 'filename="xSet-Cookie_ a=b"'],
    ['right-to-left override', 'invoice\u202efdp.exe', 'filename="invoicefdp.exe"'],
    ['U+0000', 'a\0b.pdf', 'filename="ab.pdf"'],
    ['nothing left', '...', 'filename="file"'],
    ['percent signs, which some clients decode', '%41.pdf', 'filename="_41.pdf"'],
  ])('%s does no harm', (_name, fileName, expected) => {
    expect(contentDisposition('application/pdf', fileName)).toContain(expected);
  });

  test('a very long name is cut and keeps its extension', () => {
    const header = contentDisposition('application/pdf', `${'x'.repeat(5_000)}.pdf`);
    expect(header.length).toBeLessThan(200);
    expect(header.endsWith('.pdf"')).toBe(true);
  });

  test('any name gives a valid header that holds exactly one quoted string', () => {
    fc.assert(
      fc.property(anyText({ maxLength: 400 }), (name) => {
        const header = contentDisposition('image/png', name);
        expect(() => validateHeaderValue('content-disposition', header)).not.toThrow();
        expect(header).toMatch(/^inline; filename="[\x20-\x7e]+"(?:; filename\*=UTF-8''[A-Za-z0-9%._~-]+)?$/);
        expect(header.split('"')).toHaveLength(3);
      }),
    );
  });
});
