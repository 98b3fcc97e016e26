import type { Setting } from './setting.ts';
import { SETTINGS, type SettingName } from './settings.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export function unreadable(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
  return `names a file that cannot be read (${code})`;
}

export function settingValue(values: Environment, name: SettingName): string | undefined {
  const definition: Setting = SETTINGS[name];
  return values[name] || definition.fallback;
}

export function splitList(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}
