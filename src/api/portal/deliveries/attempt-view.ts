import { sentHeaders } from '../../../engine/deliveries/webhook-request.ts';
import type { DeliveryDetail, LoggedAttempt } from '../../../features/delivery-log/deliveries.ts';
import { ADDRESS_REFUSED_TEXT, shownUrl } from '../../../platform/http/outbound-url.ts';
import { publicDeliveryId, publicEventId } from '../../../platform/public-ids.ts';
import { mayUse } from '../access/link-access.ts';
import type { Viewer } from '../access/viewer.ts';
import { badge } from '../components/badge.ts';
import { codeBlock } from '../components/copyable.ts';
import { dataTable, detailList } from '../components/table.ts';
import { columnTime, durationText, exactTime } from '../components/time.ts';
import { mayChange } from '../endpoints/endpoint-status.ts';
import { type Child, html, type Markup } from '../markup.ts';
import { shownBytes, shownText } from './shown-text.ts';

const MAX_HEADER_CHARS = 500;
const MAX_HEADERS = 40;

const COLUMNS = [
  { label: 'Attempt', kind: 'number' },
  { label: 'Time', kind: 'time' },
  { label: 'Outcome', kind: 'narrow' },
  { label: 'Duration', kind: 'number' },
  'Explanation',
] as const;

export function attemptTable(path: string, attempts: readonly LoggedAttempt[], shown: LoggedAttempt): Markup {
  const rows = attempts.map((attempt): Child[] => [
    attempt === shown
      ? html`<strong aria-current="true">${attempt.attempt}</strong>`
      : html`<a href="${path}?attempt=${attempt.attempt}#attempt">${attempt.attempt}</a>`,
    columnTime(attempt.startedAt),
    outcomeBadge(attempt),
    durationText(attempt.durationMs),
    html`<span class="break">${explainOutcome(attempt)}</span>`,
  ]);
  return dataTable('Attempts', COLUMNS, rows);
}

function outcomeBadge({ statusCode, errorClass }: LoggedAttempt): Markup {
  if (statusCode === null) return badge('bad', errorClass ?? 'error');
  return badge(statusCode >= 200 && statusCode <= 299 ? 'good' : 'bad', String(statusCode));
}

export function attemptView(viewer: Viewer, delivery: DeliveryDetail, attempt: LoggedAttempt): Markup {
  const requestHeaders = sentHeaders({ delivery, event: delivery, attempt });
  const { responseHeaders, remoteAddress, worker } = attempt;
  const facts: [string, Child][] = [
    ['Outcome', html`${outcomeBadge(attempt)} ${explainOutcome(attempt)}`],
    ['Sent to', html`<code class="break">${attempt.url}</code>`],
    ['At', exactTime(attempt.startedAt)],
  ];
  if (viewer.role === 'operator') {
    facts.push(['Address', remoteAddress === null ? '–' : html`<code>${remoteAddress}</code>`]);
    facts.push(['Process', html`<code>${worker}</code>`]);
  }
  return html`<div class="card">${detailList(facts)}${phaseBar(attempt.timings)}</div>
<div class="columns">
<section><h3>Request headers</h3>${headerTable('Request headers', requestHeaders)}
<p class="hint">Signatures and the values of custom headers are not kept in the log.</p></section>
<section><h3>Response headers</h3>${responseHeaders === null ? html`<p class="faint">No response.</p>` : headerTable('Response headers', responseHeaders)}</section>
</div>
${mayUse(viewer.link, 'GET', bodyPath(delivery)) && bodies(viewer, delivery, attempt)}`;
}

function bodyPath({ wabaId, id }: DeliveryDetail): string {
  return `/portal/w/${encodeURIComponent(wabaId)}/deliveries/${publicDeliveryId(id)}/body`;
}

/** What was sent and what came back, which may hold what customers wrote. */
function bodies(viewer: Viewer, delivery: DeliveryDetail, attempt: LoggedAttempt): Markup {
  const { responseBody } = attempt;
  const requestHeaders = sentHeaders({ delivery, event: delivery, attempt });
  const fileName = `${publicEventId(delivery.eventUuid)}.json`;
  return html`<h3>Response body</h3>
${responseBody === null || responseBody.length === 0 ? html`<p class="faint">Empty.</p>` : codeBlock(shownBytes(responseBody, 10_000), 'Response body')}
<details class="quiet"><summary>As curl</summary><p class="hint">The command has no signature, so a server that verifies signatures refuses it. To send the signed event again, replay it.</p>${codeBlock(shownText(curlCommand(curlTarget(viewer, delivery, attempt), { requestHeaders, body: delivery.body, fileName }), { maxHtmlBytes: 10_000 }), 'The request as a curl command')}</details>`;
}

function headerTable(label: string, headers: Readonly<Record<string, string>>): Markup {
  const all = Object.entries(headers);
  const rows = all
    .slice(0, MAX_HEADERS)
    .map(([name, value]): Child[] => [
      html`<span class="mono">${shownText(name, { maxHtmlBytes: MAX_HEADER_CHARS })}</span>`,
      html`<span class="mono break">${shownText(value, { maxHtmlBytes: MAX_HEADER_CHARS })}</span>`,
    ]);
  const more = all.length - rows.length;
  return html`${dataTable(label, [{ label: 'Name', kind: 'narrow' }, 'Value'], rows)}${more > 0 && html`<p class="hint">and ${more} more</p>`}`;
}

/** The log keeps no path, as it may be a credential: who may see it gets that of the endpoint, others a variable. */
function curlTarget(viewer: Viewer, { endpointUrl }: DeliveryDetail, { url }: LoggedAttempt): string {
  const isPresent = endpointUrl !== null && shownUrl(endpointUrl) === url;
  return isPresent && mayChange(viewer) ? quoted(endpointUrl) : '"$WEBHOOK_URL"';
}

/** Longer bodies are named as a file: the command is for people to read, too. */
const MAX_INLINE_BYTES = 4_096;

/** The log holds no signature and no values of custom headers, so the user adds what is needed. */
function curlCommand(
  target: string,
  {
    requestHeaders,
    body,
    fileName,
  }: { requestHeaders: Record<string, string>; body: Buffer | null; fileName: string },
): string {
  const headers = Object.entries(requestHeaders).map(
    ([name, value]) => `  -H ${quoted(`${name}: ${value}`)}`,
  );
  const isInline = body !== null && body.length <= MAX_INLINE_BYTES;
  const data = isInline ? quoted(body.toString('utf8')) : quoted(`@${fileName}`);
  return [`curl -i -X POST ${target}`, ...headers, `  --data-binary ${data}`].join(' \\\n');
}

/** One word for a POSIX shell, whatever is in it. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

type Timings = Readonly<Record<string, number | boolean | null>>;

const PHASES = [
  ['dnsMs', 'DNS', 'dns'],
  ['connectMs', 'Connect', 'connect'],
  ['tlsMs', 'TLS', 'tls'],
  ['firstByteMs', 'First byte', 'first-byte'],
] as const;

const WIDTH = 600;

type Phase = { label: string; className: string; ms: number };

function phaseBar(timings: Timings): Markup {
  const totalMs = msOf(timings.totalMs);
  const phases = phasesOf(timings, totalMs);
  const sumMs = Math.max(
    totalMs,
    phases.reduce((sum, { ms }) => sum + ms, 0),
    0.1,
  );
  let x = 0;
  const bars = phases.map(({ className, label, ms }) => {
    const width = (ms / sumMs) * WIDTH;
    const bar = html`<rect class="${className}" x="${x.toFixed(1)}" y="0" width="${width.toFixed(1)}" height="14"><title>${label}: ${shownMs(ms)}</title></rect>`;
    x += width;
    return bar;
  });
  const words = phases.map(
    ({ label, className, ms }) =>
      html`<li><svg class="key" viewBox="0 0 10 10" aria-hidden="true"><rect class="${className}" width="10" height="10"/></svg> ${label} <strong>${shownMs(ms)}</strong></li>`,
  );
  const label = `Phases: ${phases.map((phase) => `${phase.label} ${shownMs(phase.ms)}`).join(', ')}`;
  return html`<div class="phases"><svg viewBox="0 0 ${WIDTH} 14" role="img" aria-label="${label}" preserveAspectRatio="none">${bars}</svg>
<ul>${words}<li>Total <strong>${shownMs(totalMs)}</strong></li>${timings.reused === true && html`<li class="faint">on a reused connection</li>`}</ul></div>`;
}

function phasesOf(timings: Timings, totalMs: number): Phase[] {
  const known = PHASES.flatMap(([key, label, className]) =>
    typeof timings[key] === 'number' ? [{ label, className, ms: msOf(timings[key]) }] : [],
  );
  const restMs = totalMs - known.reduce((sum, { ms }) => sum + ms, 0);
  return restMs < 0.05 ? known : [...known, { label: 'Body and waiting', className: 'rest', ms: restMs }];
}

function msOf(value: number | boolean | null | undefined): number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : 0;
}

function shownMs(ms: number): string {
  return ms < 10 ? `${ms.toFixed(1)} ms` : durationText(ms);
}

const ERRORS: Readonly<Record<string, string>> = {
  dns: `${ADDRESS_REFUSED_TEXT} Check the URL of the endpoint and its DNS records.`,
  refused:
    'Nothing accepts connections at this address and port. Is the server running, and does its firewall allow the connection?',
  reset: 'The server or a proxy in front of it reset the connection. It may be restarting.',
  tls: 'The certificate may be expired, self-signed, incomplete or for another name.',
  timeout: 'No complete response came in time. Respond at once and do the work afterwards.',
  blocked_address: `${ADDRESS_REFUSED_TEXT} Check the URL of the endpoint.`,
  too_large_header: 'The response headers are larger than 16 KiB.',
  invalid_url: 'The stored URL is no longer valid. Edit the endpoint.',
  closed: 'The server closed the connection before its response was complete.',
  protocol: 'The response is not valid HTTP/1.1.',
  unreachable: 'There is no route to the address of the server.',
  proxy:
    'The egress proxy of this installation did not work. This is no fault of your server: the attempt uses up no retry and is made again.',
  proxy_refused:
    'The egress proxy of this installation does not let webhooks reach this address. Ask your operator to allow it.',
  aborted: 'Heliograph was stopping; the attempt is repeated.',
  other: 'The request failed for another reason.',
};

const CODES: Readonly<Record<number, string>> = {
  400: 'The server rejects the request. Often a body parser or a signature check does not use the raw body.',
  401: 'The server requires credentials or rejects the signature. Add a header to the endpoint, or check the signing secret.',
  403: 'The server refuses the request. Often a firewall, or a signature check with another secret.',
  404: 'The path does not exist. Check the URL of the endpoint.',
  405: 'The path does not accept POST.',
  408: 'The server waited too long for the request.',
  410: 'The server reports that the endpoint is gone, so the endpoint is disabled.',
  413: 'The server does not accept a body of this size.',
  415: 'The server does not accept application/json.',
  429: 'The server gets too many requests. Retry-After is honoured; a rate limit on the endpoint avoids this.',
  500: 'Your server failed while it processed the event. See its log.',
  502: 'A proxy in front of your server got no valid response from it.',
  503: 'Your server, or the proxy in front of it, is not available at the moment.',
  504: 'A proxy in front of your server got no response in time.',
};

const CLASSES: Readonly<Record<number, string>> = {
  3: 'The server redirects. Redirects are not followed: enter the final URL.',
  4: 'The server refuses the request.',
  5: 'The server failed.',
};

export function explainOutcome({
  statusCode,
  errorClass,
  errorMessage,
}: Pick<LoggedAttempt, 'statusCode' | 'errorClass' | 'errorMessage'>): string {
  if (statusCode === null) {
    const explained = ERRORS[errorClass ?? 'other'] ?? ERRORS.other ?? '';
    // Its message names the fault of the certificate.
    return errorClass === 'tls' ? `${errorMessage ?? 'The TLS handshake failed.'} ${explained}` : explained;
  }
  if (statusCode >= 200 && statusCode <= 299) return `The server returned ${statusCode}: delivered.`;
  const explained = CODES[statusCode] ?? CLASSES[Math.floor(statusCode / 100)] ?? 'This counts as a failure.';
  return `The server returned ${statusCode}. ${explained}`;
}
