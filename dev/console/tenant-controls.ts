import type { Viewer } from '../../src/api/portal/access/viewer.ts';
import { badge } from '../../src/api/portal/components/badge.ts';
import { statRow } from '../../src/api/portal/components/table.ts';
import { durationText } from '../../src/api/portal/components/time.ts';
import { html, type Markup, nothing } from '../../src/api/portal/markup.ts';
import { choiceFields } from './composer.ts';
import { mayPlay } from './console-choice.ts';
import type { ConsoleState } from './console-state.ts';
import type { Behaviour } from './sandbox-client.ts';

/** How the sample tenant can be told to answer, by the value of its button. */
export const TENANT_ANSWERS: Readonly<Record<string, { label: string; behaviour: Behaviour }>> = {
  ok: { label: '200 OK', behaviour: { mode: 'ok' } },
  error: { label: '500', behaviour: { mode: 'status', status: 500 } },
  limit: { label: '429', behaviour: { mode: 'status', status: 429, retryAfter: 5 } },
  slow: { label: 'slow (3 s)', behaviour: { mode: 'slow', delayMs: 3_000 } },
  hang: { label: 'no response', behaviour: { mode: 'hang' } },
  reset: { label: 'cut connection', behaviour: { mode: 'reset' } },
};

/** How often; null = until something else is chosen. */
export const TENANT_TIMES: Readonly<Record<string, { label: string; times: number | null }>> = {
  all: { label: 'from now on', times: null },
  1: { label: 'for the next webhook', times: 1 },
  3: { label: 'for the next 3', times: 3 },
};

/** Figures of the sample tenant, and a word about its endpoint when that is not as it should be. */
export function tenantSummary(state: ConsoleState): Markup {
  const { counts, waiting, endpoint, choice } = state;
  const { received, verified, duplicates, failed } = counts;
  const times = state.webhooks.flatMap(({ sinceTapMs, attempt, eventType }) =>
    sinceTapMs === null || attempt > 1 || eventType === 'media.ready' ? [] : [sinceTapMs],
  );
  return html`${statRow([
    {
      label: 'Received',
      value: received,
      note: duplicates > 0 ? `${duplicates} duplicates` : 'webhooks',
    },
    {
      label: 'Verified',
      value: verified,
      note:
        verified === received
          ? received === 0
            ? 'signatures'
            : 'all of them'
          : `${received - verified} wrong`,
      ...(verified < received ? { tone: 'bad' as const } : {}),
    },
    { label: 'Latency p50', value: median(times), note: 'from tap to receipt' },
    {
      label: 'Failed',
      value: failed,
      note: waiting > 0 ? `${waiting} pending, in order` : 'no backlog',
      ...(waiting > 0 ? { tone: 'waiting' as const } : {}),
    },
  ])}${endpointNote(endpoint, choice.number.wabaId)}`;
}

function median(times: readonly number[]): string {
  const middle = times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)];
  return middle === undefined ? '–' : durationText(middle);
}

function endpointNote(endpoint: ConsoleState['endpoint'], wabaId: string): Markup {
  if (endpoint === null) {
    return html`<p class="endpoint-note">${badge('bad', 'no endpoint')} The sample tenant no longer has an endpoint: <a href="/portal/w/${wabaId}/endpoints">Webhooks</a></p>`;
  }
  if (endpoint.mode === 'open') return nothing;
  const words = {
    probing: 'mostly fails: its events wait, and probes test it.',
    paused: 'is paused: its events wait.',
    disabled: 'is disabled: its events wait.',
  };
  return html`<p class="endpoint-note">${badge('waiting', endpoint.mode)} The <a href="/portal/w/${wabaId}/endpoints/${endpoint.id}">endpoint of the sample tenant</a> ${words[endpoint.mode]}</p>`;
}

/** The switches: how the tenant answers. */
export function tenantControls(viewer: Viewer, state: ConsoleState): Markup {
  if (!mayPlay(viewer)) return nothing;
  const fields = choiceFields(viewer, state.choice);
  return html`<div class="switches">
<form method="post" action="/portal/sandbox/tenant" data-console>${fields}
<fieldset><legend>The tenant responds with</legend>
<div class="segments" id="answers" data-part="answers">${answerButtons(state)}</div>
<label class="unseen" for="times">For which webhooks</label><select id="times" name="times">${['all', '1', '3'].map((value) => html`<option value="${value}">${TENANT_TIMES[value]?.label}</option>`)}</select>
</fieldset></form>
</div>`;
}

/** Many messages at once. */
export function burstButton(viewer: Viewer, { choice }: ConsoleState): Markup {
  if (!mayPlay(viewer)) return nothing;
  return html`<form method="post" action="/portal/sandbox/messages" data-console class="burst">${choiceFields(viewer, choice)}<button name="kind" value="burst">Send 100 messages</button></form>`;
}

/** One button for each way to answer; that in force is pressed. */
export function answerButtons({ behaviour }: ConsoleState): Markup {
  return html`${Object.entries(TENANT_ANSWERS).map(
    ([value, { label, behaviour: one }]) =>
      html`<button name="answer" value="${value}" data-key="answer-${value}" aria-pressed="${isSame(one, behaviour) ? 'true' : 'false'}">${label}</button>`,
  )}`;
}

function isSame(one: Behaviour, other: Behaviour): boolean {
  return one.mode === other.mode && (one.mode !== 'status' || one.status === other.status);
}
