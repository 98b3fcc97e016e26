export type Health = 'up' | 'degraded' | 'down';

/** An answer in words; `todo`: the advice. `unknown`: the question could not be answered. */
export type Finding = { status: Health | 'unknown'; detail: string; todo?: string };

export const ok = (detail: string): Finding => ({ status: 'up', detail });
export const warn = (detail: string, todo: string): Finding => ({ status: 'degraded', detail, todo });
export const fail = (detail: string, todo: string): Finding => ({ status: 'down', detail, todo });

export function unlessFine(fine: Finding, ...wrong: readonly (Finding | false)[]): Finding[] {
  const found = wrong.filter((one) => one !== false);
  return found.length > 0 ? found : [fine];
}

export function ageSeconds(at: Date | null): number {
  return at === null ? 0 : Math.max(0, Date.now() - at.getTime()) / 1_000;
}

export function durationOf(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} days`;
}

/** How long ago it was. */
export function ageText(at: Date | null): string {
  return durationOf(1_000 * ageSeconds(at));
}

export function sizeOf(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)));
  return `${(bytes / 1_000 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`;
}
