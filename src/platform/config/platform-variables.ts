import type { Environment } from './environment.ts';

/** A setting that a hosting platform gives under another name. */
type PlatformSetting = { setting: string; variable: string; value: string };

/**
 * The settings that Render, Railway, Heroku, Fly and their like give in variables with names of their choice. A setting
 * that is given under its name, or in a file, counts above them.
 */
export function platformSettings(env: Environment): PlatformSetting[] {
  const value = (name: string) => env[name]?.trim() ?? '';
  const railwayDomain = value('RAILWAY_PUBLIC_DOMAIN');
  const found: PlatformSetting[] = [
    { setting: 'HELIOGRAPH_DATABASE_URL', variable: 'DATABASE_URL', value: value('DATABASE_URL') },
    { setting: 'HELIOGRAPH_API_PORT', variable: 'PORT', value: value('PORT') },
    // A platform that names the port connects to it from outside of the container.
    { setting: 'HELIOGRAPH_API_HOST', variable: 'PORT', value: value('PORT') === '' ? '' : '0.0.0.0' },
    {
      setting: 'HELIOGRAPH_PUBLIC_URL',
      variable: 'RENDER_EXTERNAL_URL',
      value: value('RENDER_EXTERNAL_URL'),
    },
    {
      setting: 'HELIOGRAPH_PUBLIC_URL',
      variable: 'RAILWAY_PUBLIC_DOMAIN',
      value: railwayDomain === '' ? '' : `https://${railwayDomain}`,
    },
  ];
  return found.filter(
    (one) => one.value !== '' && value(one.setting) === '' && value(`${one.setting}_FILE`) === '',
  );
}

/** Sets them in `env`; returns a sentence for each, without its value. */
export function adoptPlatformSettings(env: Record<string, string | undefined>): string[] {
  return platformSettings(env).map(({ setting, variable, value }) => {
    env[setting] = value;
    return `${setting} is that of ${variable}`;
  });
}
