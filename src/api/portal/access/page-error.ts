import type { FastifyReply, FastifyRequest } from 'fastify';
import { RequestError } from '../../../platform/request-input.ts';
import { classifyError, refusalHeaders } from '../../plugins/errors.ts';
import { setBaseHeaders } from '../../plugins/request-hooks.ts';
import { html } from '../markup.ts';
import { refusedStatus, sendPage, setPortalHeaders } from './send-page.ts';
import { viewerIfAny } from './viewer.ts';
/** A refusal as a page. All of it may be shown to any visitor. */
export class PageError extends Error {
  readonly status: 400 | 403 | 404 | 429;
  readonly title: string;
  readonly headers: Readonly<Record<string, string>>;
  constructor(
    status: PageError['status'],
    title: string,
    message: string,
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
    this.name = 'PageError';
    this.status = status;
    this.title = title;
    this.headers = headers;
  }
}

/** The same for what is missing and for what belongs to another tenant. */
export function pageNotFound(): PageError {
  return new PageError(
    404,
    'Not found',
    'There is nothing here. The address may be mistyped, or its object was deleted.',
  );
}

export function roleRefused(): PageError {
  return new PageError(
    403,
    'Not allowed',
    'Your role does not include this. An administrator can change that.',
  );
}

/** The portal link that began the session does not permit this. */
export function capabilityRefused(): PageError {
  return new PageError(
    403,
    'Not allowed',
    'The page was opened by a link that does not include this. Ask where you opened it.',
  );
}

/** The operator has suspended the business. */
export function tenantSuspended(): PageError {
  return new PageError(
    403,
    'Suspended',
    'The business is suspended, so nothing can be changed. Its messages are received and delivered. Ask the operator of this service.',
  );
}

/** The form does not come from a page of ours, or from one of another session. */
export function formRefused(): PageError {
  return new PageError(
    403,
    'Form refused',
    'This form is too old, or it does not come from this site. Nothing was changed. Open the page again and repeat.',
  );
}

export function tooManyAttempts(waitMs: number): PageError {
  const seconds = Math.max(1, Math.ceil(waitMs / 1_000));
  const minutes = Math.ceil(seconds / 60);
  const wait = minutes === 1 ? 'a minute' : `${minutes} minutes`;
  return new PageError(429, 'Too many attempts', `There were too many attempts. Try again in ${wait}.`, {
    'retry-after': String(seconds),
  });
}

type Shown = { status: number; title: string; text: string; headers: Readonly<Record<string, string>> };

/** Does what a form asks for; `show` shows a refusal. Throws everything else. */
export async function orShown<Shown>(
  act: () => Promise<Shown>,
  show: (error: RequestError) => Shown | Promise<Shown>,
): Promise<Shown> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return await show(error);
  }
}

/** What is shown of anything thrown. What is not meant for the reader goes to the log only. */
export function reportedError(thrown: unknown, request: FastifyRequest): Shown {
  const shown = shownError(thrown);
  if (shown.status >= 500) {
    const line = { err: thrown, method: request.method, route: request.routeOptions.url };
    if (shown.status === 503) request.log.warn(line, 'page not available');
    else request.log.error(line, 'page failed');
  }
  return shown;
}

/** Turns anything thrown into a page. */
export function sendErrorPage(thrown: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const { status, title, text, headers } = reportedError(thrown, request);
  setBaseHeaders(request, reply);
  setPortalHeaders(reply);
  const viewer = viewerIfAny(request);
  const body = html`<p>${text}</p>
${status >= 500 && html`<p class="hint">Request <code>${request.id}</code></p>`}
<p><a class="button" href="/portal">${viewer === null && request.portalLinkOver === null ? 'Sign in' : 'Go to the start page'}</a></p>`;
  sendPage(reply.headers(headers), { title, body }, status);
}

const TITLES: Readonly<Record<number, string>> = {
  400: 'Request not understood',
  404: 'Not found',
  408: 'Request timed out',
  413: 'Too large',
  415: 'Request not understood',
  429: 'Too many requests',
  500: 'Something went wrong',
  503: 'Not available at the moment',
};

function shownError(thrown: unknown): Shown {
  if (thrown instanceof PageError) {
    const { status, title, message, headers } = thrown;
    return { status, title, text: message, headers };
  }
  if (thrown instanceof RequestError) return refusal(thrown);
  const error = classifyError(thrown);
  if (error.status === 404) return shownError(pageNotFound());
  const title = TITLES[error.status] ?? 'Request refused';
  return { status: error.status, title, text: error.message, headers: error.headers };
}

/** What a page did not show at its form. An object that is not there is what every other missing page is. */
function refusal(error: RequestError): Shown {
  if (error.code.startsWith('unknown_')) return shownError(pageNotFound());
  const status = refusedStatus(error);
  return {
    status,
    title: TITLES[status] ?? 'Request refused',
    text: error.message,
    headers: refusalHeaders(error),
  };
}
