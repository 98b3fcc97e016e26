import type { EndpointView } from '../../../features/endpoints/endpoints.ts';
import { codeBlock } from '../components/copyable.ts';
import type { Visit } from '../kits/visit.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PageView } from '../page.ts';
import { SETTINGS_TITLE } from './endpoint-shell.ts';
import { endpointsPath } from './endpoint-status.ts';

type Signatures = Pick<EndpointView, 'format' | 'asymmetricSignature'>;

type NewSecret = {
  title: string;
  /** Null: only the app secret is new. */
  secret: string | null;
  /** Made with it; null: there is none. */
  appSecret?: string | null;
  signatures: Signatures;
  next: { label: string; href: string };
  /** What becomes of the secret before, or what else the user must know of it. */
  overlap?: Child;
};

/** The one page that shows a secret: it is in no URL and nothing stores it. */
export function secretView(
  { waba }: Visit,
  { title, secret, appSecret = null, signatures, next, overlap }: NewSecret,
): PageView {
  const name = secret === null ? 'app secret' : 'signing secret';
  const signing = secret !== null && html`<h2>Signing secret</h2>${codeBlock(secret, 'The signing secret')}`;
  const ofApp = appSecret !== null && html`<h2>App secret</h2>${codeBlock(appSecret, 'The app secret')}`;
  return {
    title,
    trail: [{ label: SETTINGS_TITLE, href: endpointsPath(waba.wabaId) }],
    assets: ['webhooks.css'],
    notice: {
      kind: 'warning',
      text: `Copy the ${name} now and store it like a password. It is not shown again.`,
    },
    body: html`<div class="card secret">${signing}${ofApp}
${overlap && html`<p>${overlap}</p>`}
<p><a class="button primary" href="${next.href}">${next.label}</a></p></div>
<h2>Verify the signature of each webhook</h2>
${verifySamples(signatures)}`,
  };
}

type Sample = { label: string; code: string };

/** How a receiver checks the signature that every endpoint has; docs/tenants/webhooks.md shows the same. */
export const STANDARD_SAMPLES: readonly Sample[] = [
  {
    label: 'Node.js, with the packages express and standardwebhooks',
    code: `import { Webhook } from 'standardwebhooks';

const webhook = new Webhook(process.env.HELIOGRAPH_WEBHOOK_SECRET);

app.post('/webhooks', express.raw({ type: 'application/json' }), (request, response) => {
  // The raw bytes: not parsed and written again. Throws when the signature is wrong.
  const event = webhook.verify(request.body, request.headers);
  response.sendStatus(204); // Respond first, work later.
  queue.add(request.headers['webhook-id'], event); // Ignore a webhook-id that you have seen.
});`,
  },
  {
    label: 'Python, with the package standardwebhooks',
    code: `import os
from standardwebhooks.webhooks import Webhook

event = Webhook(os.environ["HELIOGRAPH_WEBHOOK_SECRET"]).verify(raw_body, headers)`,
  },
  {
    label: 'PHP, by hand',
    code: `$key = base64_decode(substr(getenv('HELIOGRAPH_WEBHOOK_SECRET'), strlen('whsec_')));
$signed = $headers['webhook-id'] . '.' . $headers['webhook-timestamp'] . '.' . $rawBody;
$expected = 'v1,' . base64_encode(hash_hmac('sha256', $signed, $key, true));
$valid = false;
foreach (explode(' ', $headers['webhook-signature']) as $given) {
    $valid = $valid || hash_equals($expected, $given);
}
$fresh = abs(time() - (int) $headers['webhook-timestamp']) <= 300;`,
  },
];

const META: Sample = {
  label: 'Node.js, X-Hub-Signature-256 as the WhatsApp Cloud API has it',
  code: `import { createHmac, timingSafeEqual } from 'node:crypto';

const expected = 'sha256=' + createHmac('sha256', process.env.APP_SECRET).update(rawBody).digest('hex');
const given = request.headers['x-hub-signature-256'] ?? '';
const isValid = given.length === expected.length && timingSafeEqual(Buffer.from(given), Buffer.from(expected));`,
};

const ED25519: Sample = {
  label: 'Node.js, with the public key',
  code: `import { createPublicKey, verify } from 'node:crypto';

// The public key of the endpoint, whpk_…; during a rotation try both.
const x = Buffer.from(process.env.WEBHOOK_PUBLIC_KEY.slice('whpk_'.length), 'base64').toString('base64url');
const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
const { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': list } = request.headers;
const signed = Buffer.concat([Buffer.from(\`\${id}.\${time}.\`), rawBody]);
const isValid = list
  .split(' ')
  .filter((one) => one.startsWith('v1a,'))
  .some((one) => verify(null, signed, key, Buffer.from(one.slice('v1a,'.length), 'base64')));
const isFresh = Math.abs(Date.now() / 1000 - Number(time)) <= 300;`,
};

export function verifySamples({ format, asymmetricSignature }: Signatures): Markup {
  const own = [...(format === 'meta' ? [META] : []), ...(asymmetricSignature === 'ed25519' ? [ED25519] : [])];
  return html`${[...own, ...STANDARD_SAMPLES].map(
    ({ label, code }, at) =>
      html`<details class="sample" ${at === 0 && html`open`}><summary>${label}</summary>${codeBlock(code, label)}</details>`,
  )}`;
}
