import type { Viewer } from '../access/viewer.ts';
import { codeBlock } from '../components/copyable.ts';
import { detailList } from '../components/table.ts';
import { exactTime } from '../components/time.ts';
import { html } from '../markup.ts';
import type { PageView } from '../page.ts';
import type { WholeWebhook } from './sandbox-client.ts';

const MAX_SHOWN_CHARACTERS = 40_000;

/** One webhook as it came over the wire: answer, headers, body. */
export function webhookPage(viewer: Viewer, webhook: WholeWebhook): PageView {
  const { n, headers, body, receivedAt, status, verified } = webhook;
  const names = Object.keys(headers).sort(byInterest);
  return {
    title: `Received webhook ${n}`,
    viewer,
    active: 'sandbox',
    assets: ['sandbox.css'],
    trail: [{ label: 'Sandbox console', href: '/portal/sandbox' }],
    body: html`${detailList([
      ['Received', exactTime(new Date(receivedAt))],
      ['Signature', verified ? '✓ right' : '✕ wrong'],
      ['Answered', status === null ? 'nothing' : String(status)],
    ])}
<div id="whole-webhook">
<h3>Headers</h3>
${codeBlock(names.map((name) => `${name}: ${headers[name]}`).join('\n'), 'Headers')}
<h3>Body</h3>
${codeBlock(readable(body).slice(0, MAX_SHOWN_CHARACTERS), 'Body')}
</div>`,
  };
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
