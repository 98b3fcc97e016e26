import type { FastifyReply, FastifyRequest } from 'fastify';
import type { SignatureProfile } from '../../../deliveries/webhook-signature.ts';
import { sendPage } from '../access/send-page.ts';
import { viewerOf } from '../access/viewer.ts';
import { wabaOf } from '../access/waba-of.ts';
import { codeBlock } from '../components/copyable.ts';
import { type Child, html } from '../markup.ts';
import { endpointsPath } from './endpoint-context.ts';
import { verifySamples } from './verify-samples.ts';

type NewSecret = {
  title: string;
  secret: string;
  signatureProfile: SignatureProfile;
  next: { label: string; href: string };
  /** What becomes of the secret before. */
  overlap: Child;
};

/**
 * The answer to the form that made a secret: the one page that shows it. It is in no URL and nothing stores it, so
 * opening the page again cannot show it.
 */
export function sendSecretPage(request: FastifyRequest, reply: FastifyReply, made: NewSecret): FastifyReply {
  const waba = wabaOf(request);
  return sendPage(reply, {
    title: made.title,
    viewer: viewerOf(request),
    waba,
    active: 'endpoints',
    trail: [{ label: 'Webhook endpoints', href: endpointsPath(waba.wabaId) }],
    assets: ['webhooks.css'],
    notice: {
      kind: 'warning',
      text: 'Copy the signing secret now and store it like a password. It is not shown again.',
    },
    body: html`<div class="card secret"><h2>Signing secret</h2>
${codeBlock(made.secret, 'The signing secret')}
${made.overlap && html`<p>${made.overlap}</p>`}
<p><a class="button primary" href="${made.next.href}">${made.next.label}</a></p></div>
<h2>Verify the signature of each webhook</h2>
${verifySamples(made.signatureProfile)}`,
  });
}
