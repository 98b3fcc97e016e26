import { durationText } from '../components/time.ts';
import { html, type Markup } from '../markup.ts';

type Timings = Readonly<Record<string, number | boolean | null>>;

const PHASES = [
  ['dnsMs', 'DNS', 'dns'],
  ['connectMs', 'Connect', 'connect'],
  ['tlsMs', 'TLS', 'tls'],
  ['firstByteMs', 'First byte', 'first-byte'],
] as const;

const WIDTH = 600;

type Phase = { label: string; className: string; ms: number };

/** Where the time of an attempt went, as one bar and in words. */
export function phaseBar(timings: Timings): Markup {
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
