import { readEndpointActivity } from '../../../features/endpoints/endpoint-statistics.ts';
import type { EndpointStatus } from '../../../features/endpoints/endpoints.ts';
import { listKeys } from '../../../features/keys/api-keys.ts';
import { endpointPath, endpointsPath } from '../endpoints/endpoint-status.ts';
import type { Visit } from '../kits/visit.ts';
import { html, type Markup, nothing } from '../markup.ts';

type Step = { title: string; text: string; isDone: boolean; href: string; label: string };

/** What to do first, with what is done already; nothing once it all is, or where a second endpoint shows that it is known. */
export async function firstSteps(visit: Visit, endpoints: readonly EndpointStatus[]): Promise<Markup> {
  if (endpoints.length > 1) return nothing;
  const steps = await stepsOf(visit, endpoints[0]);
  if (steps.every(({ isDone }) => isDone)) return nothing;
  const next = steps.findIndex(({ isDone }) => !isDone);
  const items = steps.map(({ title, text, isDone, href, label }, index) => {
    const look = index === next ? 'button primary' : 'button';
    const link =
      visit.mayChange && visit.mayUse(href) && html`<a class="${look}" href="${href}">${label}</a>`;
    const sign = html`<span aria-hidden="true">✓</span><span class="unseen">Done:</span> `;
    return html`<li class="${isDone ? 'done' : 'open'}"><div><strong>${isDone && sign}${title}</strong>${!isDone && html`<br><span class="faint">${text}</span>`}</div>${!isDone && link}</li>`;
  });
  const note =
    !visit.mayChange && html`<p class="hint">An administrator of your organisation can take these steps.</p>`;
  return html`<section class="card first-steps"><h2>First steps</h2>${note}<ol>${items}</ol></section>`;
}

async function stepsOf(visit: Visit, endpoint: EndpointStatus | undefined): Promise<Step[]> {
  const { context, waba, path } = visit;
  const [activity, keys] = await Promise.all([
    readEndpointActivity(context.database, waba.wabaId),
    listKeys(context, waba.wabaId),
  ]);
  const endpoints = endpointsPath(waba.wabaId);
  return [
    {
      title: 'Add a webhook endpoint',
      text: 'The https URL of your server. It then receives every message, status, payment and order, signed and in order.',
      isDone: endpoint !== undefined,
      href: `${endpoints}/new`,
      label: 'Add a webhook endpoint',
    },
    {
      title: 'Receive an event',
      text: 'Send a test event, and verify its signature with the code that the page of the endpoint shows.',
      isDone: [...activity.values()].some(({ lastSuccessAt }) => lastSuccessAt !== null),
      href: endpoint === undefined ? endpoints : endpointPath(endpoint.wabaId, endpoint.id),
      label: 'Send a test event',
    },
    {
      title: 'Get an API key',
      text: 'Your systems send messages with it. An operator approves your request.',
      isDone: keys.some(({ state }) => state === 'active'),
      href: `${path}/keys/new`,
      label: 'Request a key',
    },
    {
      title: 'Call the API',
      text: 'Send the first message with your key.',
      isDone: keys.some(({ lastUsedAt }) => lastUsedAt !== null),
      href: '/docs',
      label: 'Read how',
    },
  ];
}
