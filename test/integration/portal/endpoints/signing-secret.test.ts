import { describe, expect, test } from 'vitest';
import { newWebhookSecret } from '../../../../src/engine/endpoint/webhook-signature.ts';
import { add, admin, api, endpointsPath, office, stored, useEndpointBrowser } from './endpoint-browser.ts';

useEndpointBrowser();

describe('the signing secret', () => {
  test('is on the page that answers the form and on no other, in no URL and in no log', async () => {
    const { id, secret } = await add();
    expect(secret).not.toBe('');
    for (const path of [
      endpointsPath,
      `${endpointsPath}/${id}`,
      `${endpointsPath}/${id}/edit`,
      `${office.path}/audit`,
    ]) {
      expect((await admin.get(path)).body).not.toContain(secret);
    }
    const rotated = await admin.post(`${endpointsPath}/${id}/rotate-secret`, { overlapHours: '72' });
    const other = /whsec_[A-Za-z0-9+/=]+/.exec(rotated.body)?.[0];
    expect([rotated.statusCode, rotated.headers['cache-control'], other === secret]).toEqual([
      200,
      'no-store',
      false,
    ]);
    expect((await admin.get(`${endpointsPath}/${id}/rotate-secret`)).statusCode).toBe(404);
    const { previous_secret_expires_at: until } = await stored(id);
    expect(Number(until) - Date.now()).toBeGreaterThan(71 * 3_600_000);
    const { rows } = await api.database.raw('select detail::text as detail from audit_log');
    expect(JSON.stringify(rows)).not.toContain('whsec_');
  });

  test('is not rotated with an overlap that is no choice', async () => {
    const { id } = await add();
    const refused = await admin.post(`${endpointsPath}/${id}/rotate-secret`, { overlapHours: '9999' });
    expect([refused.statusCode, /whsec_[A-Za-z0-9+/]{20}/.test(refused.body)]).toEqual([422, false]);
  });
});

test('a secret of the tenant’s own takes the place of the present one, and a malformed one changes nothing', async () => {
  const { id } = await add();
  await admin.get(`${endpointsPath}/${id}`);
  const wrong = await admin.post(`${endpointsPath}/${id}/rotate-secret`, {
    overlapHours: '0',
    ownSecret: 'whsec_short',
  });
  expect([wrong.statusCode, wrong.body.includes('base64 of 24 to 64')]).toEqual([422, true]);
  const secret = newWebhookSecret();
  const fields = { overlapHours: '0', ownSecret: ` ${secret} ` };
  const changed = await admin.post(`${endpointsPath}/${id}/rotate-secret`, fields);
  expect([changed.statusCode, changed.body.includes(secret)]).toEqual([200, true]);
  const again = await admin.post(`${endpointsPath}/${id}/rotate-secret`, fields);
  expect([again.statusCode, again.body.includes('has this secret already')]).toEqual([422, true]);
});
