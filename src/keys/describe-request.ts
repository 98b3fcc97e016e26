import { markdownLine } from '../platform/markdown-line.ts';
import type { KeyRequest } from './key-request-store.ts';

/** What operators read of a request in the Temporal UI; nothing in it is secret. */
export type RequestDescription = {
  summary: string;
  /** Markdown. */
  details: string;
  memo: Record<string, string>;
};

const MAX_BYTES = 400;

/** Says of a request in the Temporal UI who asks for what, how it stands, and what an operator can do. */
export function describeRequest(request: KeyRequest): RequestDescription {
  const { id, wabaId } = request;
  const summary = summaryOf(request);
  const requestedBy = `${line(request.requester)} of ${line(request.businessName)}, WABA ${wabaId}`;
  const purpose = line(request.purpose);
  const facts = {
    requestedBy,
    purpose,
    scopes: request.scopes.join(', '),
    worksFor: request.validDays === null ? 'until it is revoked' : `${request.validDays} days`,
    replaces: replacedOf(request),
  };
  const list = [
    ['Asked by', facts.requestedBy],
    ['For', facts.purpose],
    ['Scopes', facts.scopes],
    ['Works', facts.worksFor],
    ['Replaces', facts.replaces],
  ].map(([name, value]) => `- ${name}: ${value}`);
  const details = [`**Request ${id} for an API key.** ${summary}`, list.join('\n'), nextStep(request)];
  return { summary, details: details.filter((part) => part !== '').join('\n\n'), memo: facts };
}

function summaryOf({
  state,
  decideUntil,
  revealUntil,
  decidedBy,
  decidedAt,
  note,
  revealedBy,
}: KeyRequest): string {
  const decision = `by ${line(decidedBy ?? '')}${note === null ? '' : `: ${line(note)}`}`;
  switch (state) {
    case 'requested':
      return `It waits for an operator until ${timeText(decideUntil)}.`;
    case 'approved':
      return `Approved ${decision}. The key can be revealed until ${timeText(revealUntil ?? decideUntil)}.`;
    case 'denied':
      return `Denied ${decision}.`;
    case 'expired':
      return decidedAt === null ? 'Expired: nobody decided in time.' : 'Expired: nobody revealed it in time.';
    case 'revealed':
      return `The key was revealed by ${line(revealedBy ?? '')}.`;
    case 'withdrawn':
      return 'Withdrawn by its requester.';
  }
}

function replacedOf({ replacesKeyId, overlapHours }: KeyRequest): string {
  if (replacesKeyId === null) return 'nothing';
  const end = overlapHours === null ? 'is revoked' : `${overlapHours} hours after the reveal`;
  return `key ${replacesKeyId}, which works until ${overlapHours === null ? `it ${end}` : end}`;
}

function nextStep({ state }: KeyRequest): string {
  if (state === 'requested') return 'Signals: `approve`, `deny`; the input may be a note in double quotes.';
  return state === 'approved' ? 'The signal `deny` takes the approval back.' : '';
}

function line(text: string): string {
  return markdownLine(text, MAX_BYTES);
}

function timeText(time: Date): string {
  return `${time.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
