import { expect, test } from 'vitest';
import { makeUploadSlots } from '../../../../src/api/messages/uploads/upload-slots.ts';

test('when all slots are taken, the tenant with the most makes room for one with fewer', () => {
  const slots = makeUploadSlots();
  const cut: string[] = [];
  const take = (waba: string, name: string) => slots.take(waba, ({ code }) => cut.push(`${name} ${code}`));
  for (const waba of ['a', 'b', 'c', 'd']) for (let n = 1; n <= 6; n += 1) take(waba, `${waba}${n}`);
  expect(() => take('a', 'a7')).toThrow(expect.objectContaining({ code: 'too_many_uploads' }));
  const releases = Array.from({ length: 4 }, (_, n) => take('e', `e${n}`));
  // From each of those that had most, until the newcomer has as many.
  expect(cut).toEqual(['a1', 'b1', 'c1', 'd1'].map((name) => `${name} service_unavailable`));
  expect(() => take('e', 'e5')).toThrow(expect.objectContaining({ code: 'service_unavailable' }));
  releases[0]?.();
  take('f', 'f1');
  expect(cut).toHaveLength(4);
});
