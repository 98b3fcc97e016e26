import type { SetupVisit } from '../../features/setup-links/setup-visit.ts';
import type { WabaFindings } from '../../ops/health/waba-check.ts';
import type { RequestError } from '../../platform/request-input.ts';
import { radios, textArea, textField } from '../portal/components/form.ts';
import { exactTime } from '../portal/components/time.ts';
import { type Child, html, type Markup, nothing } from '../portal/markup.ts';
import type { PageView } from '../portal/page.ts';
import { progressList } from './setup-progress.ts';
import { setupSteps } from './setup-steps.ts';
import { ADVICE, inPublicWords, REFUSALS } from './setup-texts.ts';

/** A page, and when and where the browser goes on by itself. */
export type SetupPage = Pick<PageView, 'title' | 'lead' | 'notice' | 'body' | 'error'> & {
  refresh?: { seconds: number; url?: string };
};

/** Between looks at a link that is being worked at. */
const LOOK_AGAIN_SECONDS = 3;

/** To read that it is done. */
const RETURN_SECONDS = 8;

export type SetupPlace = {
  /** Where the forms of the link go to: `/setup/links/sl_17`; the link itself before it has begun. */
  path: string;
  startPath: string;
  error?: RequestError | null;
  findings?: WabaFindings | null;
};

/** What a link shows now. */
export function setupView(visit: SetupVisit, place: SetupPlace): SetupPage {
  if (visit.refusal !== null) return refusedView(visit);
  if (visit.state === 'done') return doneView(visit, place);
  if (visit.isWorking) return workingView(visit, place);
  const { asks } = visit;
  if (asks === null) return overView(visit);
  if (asks.for === 'start' && visit.failure === null) return startView(visit, place);
  const titles = {
    start: 'The number is not connected yet',
    retry: 'The number is not connected yet',
    token: 'Enter the access token',
    waba: 'Which account is it?',
    number: 'Which number is it?',
    pin: 'Enter the PIN of the number',
  };
  return {
    title: titles[asks.for],
    error: place.error ?? null,
    body: html`${failureText(visit)}${questionForm(visit, place)}${wholeWay(visit, place)}${wayBack(visit, 'Cancel and return')}`,
  };
}

function startView(visit: SetupVisit, { startPath, error = null }: SetupPlace): SetupPage {
  const isSignup = visit.mode === 'signup';
  const lead = isSignup
    ? 'You sign in at Meta, choose your business and your number, and come back to this page. It takes about five minutes.'
    : 'You enter an access token of your WhatsApp Business Account. The rest is done for you, step by step.';
  const need = !isSignup
    ? 'Have the id of the account and a token of a system user ready.'
    : visit.connections.includes('coexistence')
      ? 'Have the phone with the WhatsApp Business app ready if you want to keep the number in the app.'
      : 'Have a phone ready that can receive a call or a text message at the number.';
  return {
    title: 'Connect your WhatsApp number',
    lead: html`${lead} <strong>${visit.businessName}</strong> then sends and receives with it.`,
    notice: error && { kind: 'error', text: inPublicWords(error.message) },
    error,
    body: html`<p>${need}</p>${plainForm(startPath, isSignup ? 'Continue to Meta' : 'Start')}<p class="hint">The link is valid until ${exactTime(visit.expiresAt)}.</p>`,
  };
}

function workingView(visit: SetupVisit, place: SetupPlace): SetupPage {
  return {
    title: 'Your number is being connected',
    lead: 'This page updates by itself. You can also close it: the work continues.',
    body: html`${wholeWay(visit, place)}`,
    refresh: { seconds: LOOK_AGAIN_SECONDS },
  };
}

const ATTENTION: Readonly<Record<SetupVisit['attention'][number], string>> = {
  number_in_review:
    'Meta still reviews the display name of the number. It works, and shows the name once the review is done.',
  no_endpoint:
    'No webhook endpoint receives the messages of the number yet. They are kept until there is one.',
};

function doneView(visit: SetupVisit, place: SetupPlace): SetupPage {
  const { attention, returnUrl } = visit;
  return {
    title: 'Your number is connected',
    notice: { kind: 'done', text: 'The number can send and receive messages.' },
    body: html`${attention.map((one) => html`<p>${ATTENTION[one]}</p>`)}<p>To write first, outside of the 24 hours after a message of a customer, add a payment method in WhatsApp Manager.</p>${wholeWay(visit, place)}${wayBack(visit, 'Return', 'button primary')}`,
    ...returning(returnUrl),
  };
}

/** It failed, and nothing on this page changes that. */
function overView(visit: SetupVisit): SetupPage {
  return {
    title: 'The number was not connected',
    body: html`${failureText(visit)}${progressList(visit)}${wayBack(visit, 'Return')}`,
    ...returning(visit.failure?.retryable === true ? null : visit.returnUrl),
  };
}

function refusedView(visit: SetupVisit): SetupPage {
  const { title, text } = REFUSALS[visit.refusal ?? 'link_expired'];
  return { title, body: html`<p>${text}</p>${wayBack(visit, 'Return')}` };
}

function returning(url: string | null): Pick<SetupPage, 'refresh'> {
  return url === null ? {} : { refresh: { seconds: RETURN_SECONDS, url } };
}

/** The page of a link in Meta's hands: the browser follows by itself, or by the button. */
export function dialogView(dialogUrl: string): SetupPage {
  return {
    title: 'Continue at Meta',
    lead: 'The page of Meta opens. When you are done there, you come back here.',
    body: html`<div class="buttons"><a class="button primary" href="${dialogUrl}" rel="noreferrer">Continue to Meta</a></div>`,
    refresh: { seconds: 0, url: dialogUrl },
  };
}

function failureText({ failure, asks }: SetupVisit): Markup {
  if (failure === null) return nothing;
  const { code, message, upstreamCode, retryAt } = failure;
  const isAsked = asks?.for === 'pin';
  return html`<div class="notice ${isAsked ? 'warning' : 'error'}" role="${isAsked ? 'status' : 'alert'}"><strong>${isAsked ? 'Warning' : 'Error'}:</strong> ${inPublicWords(message)}</div>
<p>${ADVICE[code]}</p>
${retryAt !== null && html`<p>Try again after ${exactTime(new Date(retryAt))}.</p>`}
<p class="hint">Code <code>${code}</code>${upstreamCode !== null && html`, of Meta <code>${upstreamCode}</code>`}</p>`;
}

/** The form of what is asked. Nothing that it sends decides by itself: it is compared with what Meta said for the token. */
function questionForm({ asks, mode }: SetupVisit, { path, startPath, error = null }: SetupPlace): Markup {
  const problem = error === null ? null : inPublicWords(error.message);
  if (asks === null) return nothing;
  switch (asks.for) {
    case 'start':
      return plainForm(startPath, mode === 'signup' ? 'Start again at Meta' : 'Start again');
    case 'retry':
      return plainForm(`${path}/retry`, 'Try again');
    case 'token':
      return form(`${path}/token`, 'Check and continue', tokenFields(error));
    case 'pin':
      return form(`${path}/pin`, 'Register the number', pinField(asks.triesLeft, problem));
    default:
      return form(`${path}/choice`, 'Continue', choiceField(asks, problem));
  }
}

function tokenFields(error: RequestError | null): Markup {
  const problemOf = (param: string) => (error?.param === param ? inPublicWords(error.message) : null);
  const isPlaced = error?.param === 'wabaId' || error?.param === 'accessToken';
  return html`${error !== null && !isPlaced && html`<p class="problem" role="alert">${inPublicWords(error.message)}</p>`}${textField(
    {
      label: 'Id of the WhatsApp Business Account',
      name: 'wabaId',
      hint: 'Digits. WhatsApp Manager shows it under the name of the account.',
      error: problemOf('wabaId'),
      maxLength: 64,
      required: true,
    },
  )}${textArea({
    label: 'Access token',
    name: 'accessToken',
    hint: 'Of a system user, with whatsapp_business_messaging and whatsapp_business_management. It is stored encrypted and never shown.',
    error: problemOf('accessToken'),
    rows: 3,
    maxLength: 4_096,
    isSecret: true,
  })}`;
}

function pinField(triesLeft: number, error: string | null): Markup {
  const tries = triesLeft === 1 ? 'One try is left.' : `${triesLeft} tries are left.`;
  return textField({
    label: 'PIN of the two-step verification',
    name: 'pin',
    hint: `Six digits. ${tries}`,
    error,
    maxLength: 6,
    required: true,
  });
}

type Choice = Extract<SetupVisit['asks'], { options: unknown }>;

function choiceField(asks: Choice, error: string | null): Markup {
  const label = asks.for === 'waba' ? 'WhatsApp Business Account' : 'Phone number';
  const options = asks.options.map(({ id, label: name }) => ({
    value: id,
    label: html`${name} <span class="faint mono">${id}</span>`,
  }));
  return radios({ label, name: 'id', options, error });
}

function plainForm(action: string, button: string): Markup {
  return form(action, button, nothing);
}

/** Its address is the secret of the link, or its browser has the cookie: it carries no token. */
function form(action: string, button: string, fields: Child): Markup {
  return html`<form method="post" action="${action}">${fields}<div class="buttons"><button class="primary">${button}</button></div></form>`;
}

/** The stages; where there was no dialog, the steps with what was found. */
function wholeWay(visit: SetupVisit, { path, findings = null }: SetupPlace): Markup {
  if (findings === null) return progressList(visit);
  return html`<h2>The steps</h2>${setupSteps(visit, findings, `${path}/retry`)}`;
}

function wayBack({ returnUrl }: SetupVisit, label: string, look = 'button'): Markup {
  if (returnUrl === null) return nothing;
  return html`<div class="buttons"><a class="${look}" href="${returnUrl}" rel="noreferrer">${label} to ${new URL(returnUrl).host}</a></div>`;
}
