import type { SetupVisit } from '../../features/setup-links/setup-visit.ts';
import type { WabaFinding, WabaFindings } from '../../ops/health/waba-check.ts';
import { SIGNS } from '../portal/accounts/finding-signs.ts';
import { type Child, html, type Markup } from '../portal/markup.ts';
import { inPublicWords } from './setup-texts.ts';

type Step = {
  title: string;
  findings: readonly Pick<WabaFinding, 'status' | 'question' | 'detail'>[];
  todo: string;
  /** The button of a step that upstream has a call for: where to go on from. */
  from?: 'subscribe' | 'register';
  button?: string;
};

/** The steps of a link without a dialog, each with what was found. */
export function setupSteps(visit: SetupVisit, found: WabaFindings, retryPath: string): Markup {
  const steps = stepsOf(visit, found);
  const isDone = ({ findings }: Step) => findings.every(({ status }) => status === 'up');
  return html`<ol class="steps">${steps.map((step) => stepItem(step, isDone(step), retryPath))}</ol>`;
}

function stepsOf(visit: SetupVisit, found: WabaFindings): Step[] {
  const isRegistered = visit.state === 'registered' || visit.state === 'done';
  return [
    {
      title: 'Meta accepts the access token',
      findings: [found.token],
      todo: 'Create a system user with both WhatsApp permissions in the business settings of Meta, and enter its token.',
    },
    {
      title: 'The app is subscribed to the account, and its webhooks come here',
      findings: [found.subscription],
      todo: 'The button subscribes the app that the token belongs to, and sets the callback address.',
      from: 'subscribe',
      button: 'Subscribe the app',
    },
    {
      title: 'The phone numbers are known',
      findings: [found.numbers],
      todo: 'They are copied when the token is saved, and daily.',
    },
    {
      title: 'The number is registered',
      findings: [
        {
          question: 'Is the number registered?',
          status: isRegistered ? 'up' : 'unknown',
          detail: isRegistered ? 'Yes.' : 'Not yet.',
        },
      ],
      todo: 'The button registers the number. If two-step verification is on, its PIN is asked for.',
      from: 'register',
      button: 'Register the number',
    },
    {
      title: 'There is a webhook endpoint',
      findings: [found.endpoints],
      todo: 'The service that gave you this link adds it.',
    },
    {
      title: 'A first message arrives',
      findings: [found.activity],
      todo: 'Send a message to the number from a phone, then load this page again.',
    },
  ];
}

function stepItem({ title, findings, todo, from, button }: Step, isDone: boolean, retryPath: string): Markup {
  const rows: Child[] = findings.map(
    ({ status, question, detail }) =>
      html`<p>${SIGNS[status]} ${inPublicWords(question)} <strong>${inPublicWords(detail)}</strong></p>`,
  );
  const form =
    from !== undefined &&
    html`<form method="post" action="${retryPath}"><input type="hidden" name="from" value="${from}"><button>${button}</button></form>`;
  return html`<li><strong>${title}</strong>${isDone && html` <span class="unseen">: done</span>`}${rows}${!isDone && html`<p class="hint">${todo}</p>${form}`}</li>`;
}
