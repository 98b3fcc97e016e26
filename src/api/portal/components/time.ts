import { utcText } from '../../../platform/iso-time.ts';
import { html, type Markup } from '../markup.ts';

const STEPS = [
  [60, 's', 1],
  [3_600, 'min', 60],
  [86_400, 'h', 3_600],
  [Number.POSITIVE_INFINITY, 'd', 86_400],
] as const;

/** How long before (or after) `now` something was: `4 min ago`, `in 2 h`. */
export function relativeText(at: Date, now: Date): string {
  const seconds = Math.round((now.getTime() - at.getTime()) / 1_000);
  const distance = Math.abs(seconds);
  const [, unit, size] = STEPS.find(([below]) => distance < below) ?? STEPS[3];
  const amount = `${Math.floor(distance / size)} ${unit}`;
  if (distance < 2) return 'now';
  return seconds > 0 ? `${amount} ago` : `in ${amount}`;
}

/** A moment with how long ago it was; the exact time is in the title and for machines. */
export function timeAgo(at: Date | null, now: Date, never = '–'): Markup {
  if (at === null) return html`<span class="faint">${never}</span>`;
  return html`<time datetime="${at.toISOString()}" title="${utcText(at)}">${relativeText(at, now)}</time>`;
}

/** A moment to the second, for lists that people compare. */
export function exactTime(at: Date | null, never = '–'): Markup {
  if (at === null) return html`<span class="faint">${never}</span>`;
  return html`<time class="exact" datetime="${at.toISOString()}">${utcText(at)}</time>`;
}

/** The same for a column of the kind `time`, whose heading names the zone. */
export function columnTime(at: Date | null, never = '–'): Markup {
  if (at === null) return html`<span class="faint">${never}</span>`;
  return html`<time class="exact" datetime="${at.toISOString()}">${utcText(at).replace(' UTC', '')}</time>`;
}

/** A length of time: `830 ms`, `4.2 s`, `3 min`. */
export function durationText(durationMs: number): string {
  if (durationMs < 1_000) return `${Math.round(durationMs)} ms`;
  if (durationMs < 60_000) return `${(durationMs / 1_000).toFixed(1)} s`;
  if (durationMs < 7_200_000) return `${Math.round(durationMs / 60_000)} min`;
  return durationMs < 172_800_000
    ? `${Math.round(durationMs / 3_600_000)} h`
    : `${Math.round(durationMs / 86_400_000)} d`;
}
