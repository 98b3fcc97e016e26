import { healthOf, QUESTIONS } from '../../../ops/health/questions.ts';
import {
  callbackUrlOf,
  checkWaba,
  type WabaFinding,
  type WabaFindings,
} from '../../../ops/health/waba-check.ts';
import { NEEDED_FIELDS } from '../../../platform/upstream-fields.ts';
import { PAGES } from '../access/page-access.ts';
import { copyable } from '../components/copyable.ts';
import { formMarkup, type Refused } from '../kits/form-page.ts';
import { viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { SIGNS } from './finding-signs.ts';
import { TOKEN_FORM, TOKEN_SAVED } from './waba-forms.ts';

/** One of the things that must be done until webhooks of a WABA arrive at its tenant. */
type Step = {
  id: string;
  title: string;
  findings: readonly WabaFinding[];
  /** What to do, in the order in which it is done. */
  todo: readonly Child[];
  action?: Child;
};

export function wabaSetUpPage(app: PortalApp, context: PortalContext): void {
  viewPage(app, context, {
    path: '/portal/operator/wabas/:wabaId/set-up',
    access: PAGES.operator,
    active: 'operator/tenants',
    view: async (visit) => await setUpView(visit, null),
  });
}

/** The page; `refused`: a token that was not saved. */
export async function setUpView(visit: Visit, refused: Refused | null): Promise<PageView> {
  const { context, path } = visit;
  const { wabaId, tenantId, businessName } = visit.waba;
  const [findings, address] = await Promise.all([checkWaba(context, wabaId), addressFinding(context)]);
  const tokenForm = formMarkup(visit, TOKEN_FORM, { subject: { from: 'set-up' }, refused });
  const place = { wabaId, callbackUrl: callbackUrlOf(context), tokenForm };
  const steps = stepsOf(place, { ...findings, address });
  const done = steps.filter(isDone).length;
  const next = steps.find((step) => !isDone(step));
  // A link that differs in nothing but its fragment loads no page again.
  const recheckPath = `${path}?after=${Date.now()}`;
  return {
    title: 'Set up the WABA',
    lead: `${businessName}, WABA ${wabaId}: ${done} of ${steps.length} steps are done.${next === undefined ? ' Webhooks arrive and are delivered.' : ` Next: ${lowerFirst(next.title)}.`}`,
    trail: [
      { label: 'Tenants', href: '/portal/operator/tenants' },
      { label: businessName, href: `/portal/operator/tenants/${tenantId}` },
      { label: `WABA ${wabaId}`, href: `/portal/operator/wabas/${wabaId}` },
    ],
    done: { saved: TOKEN_SAVED },
    actions: html`<a class="button primary" href="${path}">Check all again</a>`,
    body: html`${steps.map((step, index) => stepCard(step, { number: index + 1, recheckPath }))}`,
  };
}

type Place = { wabaId: string; callbackUrl: string; tokenForm: Markup };

function stepsOf(
  { wabaId, callbackUrl, tokenForm }: Place,
  found: WabaFindings & { address: WabaFinding },
): Step[] {
  const base = `/portal/w/${wabaId}`;
  return [
    {
      id: 'address',
      title: 'The service has a public address',
      findings: [found.address],
      todo: [
        'Point DNS at the service and give it a certificate that upstream trusts; self-signed ones are refused.',
        html`Enter in the app of the upstream platform, under Webhooks, this callback URL and the verify token of the settings: ${copyable(callbackUrl)}`,
      ],
    },
    {
      id: 'token',
      title: 'Upstream accepts the access token',
      findings: [found.token],
      todo: [
        'In the business settings, create a system user and give it the WABA and the app.',
        'Generate a token that does not expire, with the permissions whatsapp_business_messaging and whatsapp_business_management, and save it here.',
      ],
      action: tokenForm,
    },
    {
      id: 'subscription',
      title: 'The app is subscribed to the WABA',
      findings: [found.subscription],
      todo: [
        `In the app, subscribe to the fields ${NEEDED_FIELDS.flatMap(({ fields }) => fields).join(', ')}, and to others that the tenant wants. Publish the app: until then, upstream sends test webhooks only.`,
        html`Subscribe the app to the WABA with its token: ${copyable(`POST /${wabaId}/subscribed_apps`)}`,
      ],
    },
    {
      id: 'numbers',
      title: 'The phone numbers are known',
      // A worker looks them up later than the token was saved: that it has not yet is no step to do.
      findings: found.following.status === 'down' ? [found.numbers, found.following] : [found.numbers],
      todo: [
        'Numbers are copied from upstream when the token is saved, and daily. Save it again to copy now.',
      ],
    },
    {
      id: 'endpoint',
      title: 'The tenant has an endpoint',
      findings: [found.endpoints],
      todo: [
        'The tenant adds the URL of its server under Webhook Settings and keeps the signing secret.',
        'A test event shows whether the server responds and verifies the signature.',
      ],
      action: html`<p><a class="button" href="${base}/endpoints">Webhooks of the tenant</a></p>`,
    },
    {
      id: 'message',
      title: 'A first message arrives',
      findings: [found.activity, found.items],
      todo: ['Send a message to one of the numbers from a phone, then check again.'],
      action: html`<p><a class="button" href="${base}/deliveries">Deliveries of the tenant</a></p>`,
    },
  ];
}

/** Abbreviations in a title stay as they are. */
function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

function isDone({ findings }: Step): boolean {
  return findings.every(({ status }) => status === 'up');
}

function stepCard(step: Step, { number, recheckPath }: { number: number; recheckPath: string }): Markup {
  const done = isDone(step);
  const rows = step.findings.map(
    ({ status, question, detail, todo }) =>
      html`<p>${SIGNS[status]} ${question} <strong>${detail}</strong>${todo !== undefined && html`<br><span class="faint">${todo}</span>`}</p>`,
  );
  return html`<section class="card" id="${step.id}"><h2><span aria-hidden="true">${done ? '✓' : `${number}.`}</span> ${step.title}${done && html` <span class="unseen">: done</span>`}</h2>
${rows}
<details ${!done && html`open`}><summary>What to do</summary><ol>${step.todo.map((line) => html`<li>${line}</li>`)}</ol>${step.action ?? ''}</details>
${!done && html`<div class="buttons"><a class="button" href="${recheckPath}#${step.id}">Check again</a></div>`}</section>`;
}

/** A service that cannot reach itself by its public name may be reached by others. */
async function addressFinding({ publicUrl }: PortalContext): Promise<WabaFinding> {
  const { question, ask } = QUESTIONS.publicAddress;
  const todo =
    'Run heliograph-server doctor; correct HELIOGRAPH_PUBLIC_URL, DNS, the certificate or the proxy.';
  const answer = await ask({ publicUrl }).catch(() => null);
  if (answer === null) {
    const others = 'In some networks a service cannot reach itself by its public name, though others can.';
    const detail = `${publicUrl} cannot be reached from here.`;
    return { question, status: 'unknown', detail, todo: `${todo} ${others}` };
  }
  const status = healthOf('publicAddress', answer);
  if (status === 'up') return { question, status, detail: `${publicUrl} is ready.` };
  return { question, status, detail: `${publicUrl}/readyz returns ${answer.status}.`, todo };
}
