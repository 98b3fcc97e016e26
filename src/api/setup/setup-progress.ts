import type { SetupVisit } from '../../features/setup-links/setup-visit.ts';
import { html, type Markup } from '../portal/markup.ts';

type Stage = { title: string; steps: readonly string[] };

/** The way of a link as the customer sees it; `steps`: at which a failure belongs to the stage. */
function stagesOf({ mode, connections }: SetupVisit): Stage[] {
  const isInApp = connections.length === 1 && connections[0] === 'coexistence';
  return [
    {
      title: mode === 'signup' ? 'You sign in at Meta and choose your number' : 'You enter an access token',
      steps: ['login', 'permissions'],
    },
    { title: 'Your WhatsApp Business Account is connected', steps: ['waba', 'number', 'subscribe'] },
    {
      title: isInApp ? 'The number is shared with the WhatsApp Business app' : 'The number is registered',
      steps: ['register'],
    },
    { title: 'Everything is checked', steps: ['check'] },
  ];
}

const DONE_STAGES: Readonly<Record<string, number>> = {
  authorized: 1,
  subscribed: 2,
  registered: 3,
  done: 4,
};

/** How many stages are done. What failed says at which step; a step of Meta's dialog is in the first. */
function doneStages(visit: SetupVisit): number {
  const { failure, state } = visit;
  if (failure === null) return DONE_STAGES[state] ?? 0;
  return Math.max(
    0,
    stagesOf(visit).findIndex(({ steps }) => steps.includes(failure.step)),
  );
}

export function progressList(visit: SetupVisit): Markup {
  const done = doneStages(visit);
  const items = stagesOf(visit).map(({ title }, index) => {
    if (index < done) {
      return html`<li class="done"><div><strong><span aria-hidden="true">✓</span><span class="unseen">Done:</span> ${title}</strong></div></li>`;
    }
    const isNext = index === done;
    const note =
      isNext && (visit.failure === null ? (visit.isWorking ? 'In progress…' : 'Next') : 'Not done yet');
    return html`<li class="open" ${isNext && html`aria-current="step"`}><div>${title}${note && html`<br><span class="faint">${note}</span>`}</div></li>`;
  });
  return html`<div class="first-steps"><ol>${items}</ol></div>`;
}
