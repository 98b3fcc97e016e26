import { expect, test } from 'vitest';
import {
  adoptPlatformSettings,
  platformSettings,
} from '../../../../src/platform/config/platform-variables.ts';
import { SETTINGS } from '../../../../src/platform/config/settings.ts';

const DATABASE = 'postgresql://u:secret-password@db.example/heliograph';

test.each([
  ['nothing', {}, {}],
  ['empty variables', { DATABASE_URL: ' ', PORT: '', RAILWAY_PUBLIC_DOMAIN: '' }, {}],
  [
    'Render',
    { DATABASE_URL: DATABASE, PORT: '10000', RENDER_EXTERNAL_URL: 'https://gw.onrender.example' },
    {
      HELIOGRAPH_DATABASE_URL: DATABASE,
      HELIOGRAPH_API_PORT: '10000',
      HELIOGRAPH_API_HOST: '0.0.0.0',
      HELIOGRAPH_PUBLIC_URL: 'https://gw.onrender.example',
    },
  ],
  [
    'Railway',
    { RAILWAY_PUBLIC_DOMAIN: 'gw.railway.example' },
    { HELIOGRAPH_PUBLIC_URL: 'https://gw.railway.example' },
  ],
  [
    'settings under their names, or in files, which count above',
    {
      ...{ DATABASE_URL: DATABASE, HELIOGRAPH_DATABASE_URL_FILE: '/run/secrets/url' },
      ...{ PORT: '10000', HELIOGRAPH_API_PORT: '8080', HELIOGRAPH_API_HOST: '::' },
      ...{ RENDER_EXTERNAL_URL: 'https://a.example', HELIOGRAPH_PUBLIC_URL: 'https://b.example' },
    },
    {},
  ],
])('%s', (_name, env, expected) => {
  const found = platformSettings(env);
  expect(Object.fromEntries(found.map(({ setting, value }) => [setting, value]))).toEqual(expected);
  for (const { setting } of found) expect(Object.keys(SETTINGS)).toContain(setting);
});

test('what is adopted is set and named without its value', () => {
  const env: Record<string, string | undefined> = { DATABASE_URL: DATABASE, PORT: '10000' };
  expect(adoptPlatformSettings(env)).toEqual([
    'HELIOGRAPH_DATABASE_URL is that of DATABASE_URL',
    'HELIOGRAPH_API_PORT is that of PORT',
    'HELIOGRAPH_API_HOST is that of PORT',
  ]);
  expect(env.HELIOGRAPH_DATABASE_URL).toBe(DATABASE);
  expect(env.HELIOGRAPH_API_HOST).toBe('0.0.0.0');
  expect(adoptPlatformSettings(env)).toEqual([]);
});
