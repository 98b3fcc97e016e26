import type { FastifyReply } from 'fastify';
import type { RequestError } from '../../../platform/request-input.ts';
import { refusalHeaders } from '../../plugins/errors.ts';
import { noticeAfter } from '../components/notice.ts';
import { formValues } from '../form-values.ts';
import { type PageView, renderPage } from '../page.ts';

/** Sends a page. Its viewer, its WABA and what was just done are those of the request, unless `view` names others. */
export function sendPage(
  reply: FastifyReply,
  view: PageView,
  status: number = refusedStatus(view.error),
): FastifyReply {
  const { portalSession, portalWaba, portalPlace, query } = reply.request;
  const {
    portalBrand: brand,
    portalNewAlerts: newAlerts,
    portalPendingApprovals: pendingApprovals,
  } = reply.request;
  const hasSandbox = reply.server.hasDecorator('portalSandbox');
  const viewer = portalSession?.viewer.step === 'whole' ? portalSession.viewer : null;
  const isOfOperators = view.active?.startsWith('operator/') ?? false;
  const waba = isOfOperators ? null : (portalWaba ?? portalPlace?.waba ?? null);
  const wabaIds = portalWaba === null ? (portalPlace?.wabaIds ?? []) : [];
  const notice = view.notice ?? noticeAfter(formValues(query).text('done'), view.done ?? {});
  return reply
    .code(status)
    .headers(view.error ? refusalHeaders(view.error) : {})
    .type('text/html; charset=utf-8')
    .send(
      renderPage({ hasSandbox, brand, viewer, waba, wabaIds, newAlerts, pendingApprovals, ...view, notice }),
    );
}

export function refusedStatus(error: RequestError | null | undefined): 200 | 422 | 429 {
  if (!error) return 200;
  return error.code === 'rate_limit_exceeded' ? 429 : 422;
}

/** Nothing inline and nothing from elsewhere; `ancestors`: whose pages may have it in a frame. */
const contentSecurityPolicy = (ancestors: string) =>
  [
    "default-src 'none'",
    "style-src 'self'",
    "script-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "media-src 'self'",
    "form-action 'self'",
    `frame-ancestors ${ancestors}`,
    "base-uri 'none'",
  ].join('; ');

export const PAGE_HEADERS = {
  'content-security-policy': contentSecurityPolicy("'none'"),
  'cache-control': 'no-store',
  // With no-referrer, browsers send "Origin: null" with forms: ours would look like those of other sites.
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'x-frame-options': 'DENY',
};

export function setPortalHeaders(reply: FastifyReply): void {
  reply.headers(PAGE_HEADERS);
  const origin = reply.request.portalFrameOrigin;
  if (origin === null) return;
  reply.header('content-security-policy', contentSecurityPolicy(origin)).removeHeader('x-frame-options');
}
