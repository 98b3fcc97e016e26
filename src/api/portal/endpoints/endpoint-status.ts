import type { Endpoint } from '../../../engine/endpoint/store.ts';
import { shownCount, type WaitingDeliveries } from '../../../engine/queue/waiting.ts';
import type { EndpointActivity } from '../../../features/endpoints/endpoint-statistics.ts';
import { shownUrl } from '../../../platform/http/outbound-url.ts';
import { utcText } from '../../../platform/iso-time.ts';
import type { Viewer } from '../access/viewer.ts';
import { badge } from '../components/badge.ts';
import { percentText } from '../components/percent.ts';
import { durationText } from '../components/time.ts';
import type { Option } from '../kits/form-fields.ts';
import { html, type Markup } from '../markup.ts';

type Status = Pick<Endpoint, 'mode' | 'failingSince'> & { recoveringSince?: Date | null };

export function modeBadge({ mode, failingSince, recoveringSince = null }: Status): Markup {
  if (mode === 'paused') return badge('off', 'Paused');
  if (mode === 'disabled') return badge('bad', 'Disabled');
  if (mode === 'probing') return badge('bad', 'Probing');
  if (failingSince !== null) return badge('waiting', 'Failing');
  return recoveringSince === null ? badge('good', 'Active') : badge('waiting', 'Recovering');
}

export function isInTrouble({ mode, failingSince }: Status): boolean {
  return mode !== 'open' || failingSince !== null;
}

export function modeSentence({ mode, failingSince, recoveringSince = null }: Status): string {
  if (mode === 'paused') return 'Events wait. Nothing is sent until the endpoint is enabled.';
  if (mode === 'disabled') return 'Events wait. Nothing is sent until the endpoint is enabled.';
  if (mode === 'probing') {
    return 'Most attempts failed, so events wait. Probes test the endpoint; it is active again as soon as one succeeds.';
  }
  if (failingSince !== null) return 'The latest attempts failed. Events are retried by the schedule.';
  return recoveringSince === null
    ? 'Events are sent as they arrive.'
    : 'The endpoint accepts deliveries again. Events that waited are being sent.';
}

/** When an endpoint that fails is disabled; null for others. */
export function disablingSentence({ mode, failingSince }: Status, disableAfterHours: number): string | null {
  if (failingSince === null || (mode !== 'open' && mode !== 'probing')) return null;
  const days = disableAfterHours / 24;
  const time = Number.isInteger(days) ? countOf(days, 'day') : countOf(disableAfterHours, 'hour');
  const at = new Date(failingSince.getTime() + disableAfterHours * 3_600_000);
  return `An endpoint is disabled after ${time} of failures: this one on ${utcText(at)}, unless an attempt succeeds.`;
}

function countOf(n: number, unit: string): string {
  return `${n} ${unit}${n === 1 ? '' : 's'}`;
}

/** Why an endpoint is not open or fails, with the last error of what waits for it. */
export function troubleReason(
  { modeReason }: Pick<Endpoint, 'modeReason'>,
  lastError: string | null,
): string {
  if (lastError === null) return modeReason ?? '';
  if (modeReason === null) return lastError;
  return modeReason.includes(lastError) ? modeReason : `${modeReason}; last error: ${lastError}`;
}

/** `12 · oldest 4 min`, or a dash. */
export function waitingText(waiting: WaitingDeliveries): Markup {
  if (waiting.count === 0) return html`<span class="faint">–</span>`;
  const age = waiting.oldestMs === null ? null : durationText(waiting.oldestMs);
  return html`${shownCount(waiting)}${age !== null && html` <span class="faint">oldest ${age}</span>`}`;
}

/** `99.8 %` of the attempts of the last 24 hours; null without any. */
export function successRate({
  successes,
  failures,
}: Pick<EndpointActivity, 'successes' | 'failures'>): string | null {
  const attempts = successes + failures;
  if (attempts === 0) return null;
  const percent = (successes / attempts) * 100;
  // 99.96 must not read as if nothing had failed.
  const shown = failures > 0 ? Math.min(percent, 99.9) : percent;
  return percentText(shown === 100 || shown === 0 ? shown : shown.toFixed(1));
}

export function endpointsPath(wabaId: string): string {
  return `/portal/w/${encodeURIComponent(wabaId)}/endpoints`;
}

export function endpointPath(wabaId: string, id: string): string {
  return `${endpointsPath(wabaId)}/${encodeURIComponent(id)}`;
}

export function failedPath(wabaId: string, id: string): string {
  return `/portal/w/${encodeURIComponent(wabaId)}/deliveries?state=failed&endpointId=${encodeURIComponent(id)}`;
}

export function mayChange({ role, link }: Viewer): boolean {
  return role !== 'member' && (link === null || link.capabilities.includes('manage_endpoints'));
}

/** A URL of the tenant's servers, in full only for those who may change it: its path and query may be credentials. */
export function urlFor(viewer: Viewer, url: string): string {
  return mayChange(viewer) ? url : shownUrl(url);
}

/** What people call an endpoint: its description, or its URL. */
export function endpointName(
  viewer: Viewer,
  { url, description }: Pick<Endpoint, 'url' | 'description'>,
): string {
  return description || urlFor(viewer, url);
}

export type EndpointNames = Pick<Endpoint, 'id' | 'url' | 'description'>;

export function endpointOption({ id, url, description }: EndpointNames): Option {
  const address = shownUrl(url).replace(/^https?:\/\//, '');
  return { value: id, label: `${id}: ${description || address.slice(0, 60)}` };
}
