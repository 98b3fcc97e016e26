import { expect, test } from 'vitest';
import { OTHER_WABA, startAdmin, WABA } from '../../support/admin-cli.ts';

test('admin renames a tenant, and takes numbers, WABAs and tenants away when it is told so twice', async () => {
  const { json, admin } = await startAdmin();
  const [{ userId }, other] = await json('tenant', 'list');
  const id = String(userId);
  expect(await json('tenant', 'rename', id, '--name', ' New name ')).toEqual({
    userId,
    businessName: 'New name',
  });
  expect((await json('tenant', 'list'))[0]).toMatchObject({ businessName: 'New name' });
  const [number] = (await json('waba', 'list'))[0].phoneNumbers;
  await json('waba', 'remove-number', WABA, number.phoneNumberId);
  expect((await json('waba', 'list'))[0].phoneNumbers).toHaveLength(1);
  expect(await admin(['waba', 'remove', WABA])).toMatchObject({
    exitCode: 2,
    stderr: expect.stringMatching(/confirm with --yes/),
  });
  expect(await json('waba', 'remove', WABA, '--yes')).toEqual({
    wabaId: WABA,
    endpoints: 0,
    dropped: 0,
    kept: false,
  });
  expect(await admin(['tenant', 'remove', String(other.userId)])).toMatchObject({ exitCode: 2 });
  expect(await json('tenant', 'remove', String(other.userId), '--yes')).toMatchObject({
    wabaIds: [OTHER_WABA],
    kept: [],
  });
  expect(await json('tenant', 'list')).toHaveLength(1);
  expect(await json('waba', 'list')).toEqual([]);
});
