import type { Viewer } from '../../api/portal/access/viewer.ts';
import { codeBlock } from '../../api/portal/components/copyable.ts';
import { detailList } from '../../api/portal/components/table.ts';
import { exactTime } from '../../api/portal/components/time.ts';
import { type Child, html, type Markup } from '../../api/portal/markup.ts';
import type { PageView } from '../../api/portal/page.ts';
import type { DeliveryOutlook } from '../../deliveries/log/delivery-outlook.ts';
import type { Config } from '../../platform/config/config.ts';
import { workflowUrl } from '../../platform/temporal/workflow-url.ts';
import type { WholeWebhook } from './sandbox-client.ts';

const MAX_SHOWN_CHARACTERS = 40_000;

/** One webhook as it came over the wire: who carried it, headers, body. */
export function webhookPage(
  viewer: Viewer,
  webhook: WholeWebhook,
  outlook: DeliveryOutlook | null,
  temporal: Config['temporal'],
): PageView {
  const { n, headers, body, receivedAt, status, verified } = webhook;
  const names = Object.keys(headers).sort(byInterest);
  return {
    title: `Received webhook ${n}`,
    viewer,
    active: 'sandbox',
    assets: ['sandbox.css'],
    trail: [{ label: 'Sandbox console', href: '/portal/sandbox' }],
    body: html`<div id="whole-webhook">
${detailList([...facts(webhook, outlook, temporal), ['Received', exactTime(new Date(receivedAt))], ['Signature', verified ? '✓ valid' : '✕ invalid'], ['Response', status === null ? 'none' : String(status)]])}
<h3>Headers</h3>
${codeBlock(names.map((name) => `${name}: ${headers[name]}`).join('\n'), 'Headers')}
<h3>Body</h3>
${codeBlock(readable(body).slice(0, MAX_SHOWN_CHARACTERS), 'Body')}
</div>`,
  };
}

function facts(
  { name, webhookId, headers }: WholeWebhook,
  outlook: DeliveryOutlook | null,
  temporal: Config['temporal'],
): [string, Child][] {
  const workflowId = outlook?.workflowId ?? null;
  const url = workflowUrl(temporal, workflowId);
  const delivery = headers['x-service-delivery-id'] ?? '';
  const deliveryPath = `/portal/w/${encodeURIComponent(name)}/deliveries/${encodeURIComponent(delivery)}`;
  return [
    [
      'Workflow',
      url === null
        ? faint('shown once the attempt is recorded')
        : html`<a href="${url}" target="_blank" rel="noopener"><code>${workflowId}</code></a>`,
    ],
    ['Delivery', outlook === null ? '–' : html`<a href="${deliveryPath}"><code>${delivery}</code></a>`],
    ['eventId', html`<code>${headers['x-service-event-id'] ?? ''}</code>`],
    ['webhook-id', html`<code>${webhookId}</code>`],
    ['Sequence', html`${headers['x-service-sequence'] ?? '–'} ${faint('of its ordering key')}`],
  ];
}

function faint(words: string): Markup {
  return html`<span class="faint">${words}</span>`;
}

/** Ours first: those of the connection are the same on every request. */
function byInterest(one: string, other: string): number {
  const rank = (name: string) => (/^(webhook-|x-service-|idempotency)/.test(name) ? 0 : 1);
  return rank(one) - rank(other) || one.localeCompare(other);
}

/** Indented. Numbers are shown as they were written only where JSON of this program writes them so. */
function readable(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}
