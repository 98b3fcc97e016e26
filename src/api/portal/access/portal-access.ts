import cookie from '@fastify/cookie';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { findWaba } from '../../../features/accounts/accounts.ts';
import { brandOf } from '../../../features/accounts/brands.ts';
import { isSuspended } from '../../../features/accounts/suspension.ts';
import { countWaitingKeyRequests } from '../../../features/keys/key-requests.ts';
import { stepOf } from '../../../features/users/sign-in-policy.ts';
import { findOpenSessions, noteUse, openSession } from '../../../features/users/user-sessions.ts';
import { countNewAlerts } from '../../../ops/alerts/alerts.ts';
import { parseEncryptionKeys } from '../../../platform/crypto/secret-box.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { createBatchedLookup } from '../../plugins/batched-lookup.ts';
import { readFormBodies } from '../../plugins/body-parsers.ts';
import type { ShareOwner } from '../../shares/connection-shares.ts';
import { secondStepPath, signInPath } from '../navigation.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { createKnownDevices } from '../users/sign-in-limit.ts';
import { createFormTokens, type FormTokens } from './form-tokens.ts';
import { isInPlace } from './framing.ts';
import { mayUse, requireNeedsOfLinks, seesWaba } from './link-access.ts';
import { linkOverPage } from './link-over.ts';
import { limitOpenForms } from './open-forms.ts';
import { operatorAddress } from './operator-address.ts';
import { PAGES, requireDeclaredAccess } from './page-access.ts';
import {
  capabilityRefused,
  formRefused,
  PageError,
  pageNotFound,
  roleRefused,
  sendErrorPage,
  tenantSuspended,
} from './page-error.ts';
import { sendPage, setPortalHeaders } from './send-page.ts';
import { sessionCookie } from './session-cookie.ts';
import { tenantPlace } from './tenant-place.ts';
import { alertViewerOf, isOperatorElsewhere, type Viewer, viewerIfAny } from './viewer.ts';

/** Routes that are registered before, such as those of the assets, are left alone. */
export async function requirePortalAccess(scope: PortalApp, context: PortalContext): Promise<void> {
  const { config, database, lookupDatabase, shares, publicUrl } = context;
  const findSession = createSessionLookup(lookupDatabase);
  const isOperatorAddress = operatorAddress(config.portal, context.isOperatorListener);
  const secrets = parseEncryptionKeys(config.encryptionKeys).map(({ key }) => key);
  const tokens = createFormTokens(secrets);
  const devices = createKnownDevices(secrets);
  await scope.register(cookie);
  readFormBodies(scope);
  scope.decorate('portalFormTokens', tokens);
  scope.decorateRequest('portalSession', null);
  scope.decorateRequest('portalAwaiting', null);
  scope.decorateRequest('portalLinkOver', null);
  scope.decorateRequest('portalFrameOrigin', null);
  scope.decorateRequest('portalBrand', null);
  scope.decorateRequest('portalWaba', null);
  scope.decorateRequest('portalNewAlerts', null);
  scope.decorateRequest('portalPendingApprovals', 0);
  scope.decorateRequest('portalPlace', null);
  scope.setErrorHandler(async (error, request, reply) => {
    // A page that was refused early has not looked for it, and one that failed must not try again.
    if (error instanceof PageError) await findPlace(request, database).catch(() => undefined);
    return sendErrorPage(error, request, reply);
  });
  scope.addHook('onRequest', async (_request, reply) => setPortalHeaders(reply));
  scope.addHook('onRequest', async (request, reply) => {
    if (request.routeOptions.config.pageAccess === 'operator' && !isOperatorAddress(request))
      throw pageNotFound();
    await readSession(request, { findSession, context, isOperatorAddress: isOperatorAddress(request) });
    if (request.portalFrameOrigin !== null) setPortalHeaders(reply);
  });
  scope.addHook('onRequest', (request, _reply, done) => shares.serve(ownerOf(viewerIfAny(request)), done));
  limitOpenForms(scope, (request) => devices.read(request) !== null, context.now);
  refuseForeignForms(scope, tokens, publicUrl);
  scope.addHook('onRequest', async (request, reply) => await checkAccess(request, reply, database));
  scope.addHook('preHandler', async (request) => {
    await Promise.all([
      countNews(request, database),
      findPlace(request, database),
      findBrand(request, database),
    ]);
  });
  requireDeclaredAccess(scope);
  requireNeedsOfLinks(scope);
  scope.route({
    method: ['GET', 'POST'],
    url: '/portal/*',
    config: PAGES.open,
    onRequest: async ({ method, url }) => {
      if (method !== 'GET' || url !== '/portal/') throw pageNotFound();
    },
    handler: async (_request, reply) => reply.redirect('/portal', 303),
  });
}

/** Whose part of the connections a page takes: visitors who have not signed in share one. */
function ownerOf(viewer: Viewer | null): ShareOwner {
  if (viewer === null) return { name: 'visitors', member: 'visitors' };
  const { userId, tenantId } = viewer;
  if (tenantId === null) return { name: `operator ${userId}`, member: userId, isOperator: true };
  return { name: tenantId, member: userId };
}

async function countNews(request: FastifyRequest, database: Database): Promise<void> {
  const viewer = viewerIfAny(request);
  if (viewer === null || isOperatorElsewhere(viewer)) return;
  if (request.method !== 'GET' || request.routeOptions.config.polled) return;
  const [newAlerts, approvals] = await Promise.all([
    countNewAlerts(database, alertViewerOf(viewer)),
    viewer.tenantId === null ? countWaitingKeyRequests({ database }) : 0,
  ]);
  request.portalNewAlerts = newAlerts;
  request.portalPendingApprovals = approvals;
}

/** That of the tenant where the page is; on pages before the sign-in that of the installation. */
async function findBrand(request: FastifyRequest, database: Database): Promise<void> {
  if (request.routeOptions.config.polled) return;
  const tenantId = request.portalWaba?.tenantId ?? viewerIfAny(request)?.tenantId ?? null;
  request.portalBrand = await brandOf(database, tenantId);
}

async function findPlace(request: FastifyRequest, database: Database): Promise<void> {
  const viewer = viewerIfAny(request);
  const isNeeded = request.portalWaba === null && request.portalPlace === null;
  if (viewer === null || !isNeeded || request.routeOptions.config.polled) return;
  request.portalPlace = await tenantPlace(database, viewer);
}

/** However many cookies are made up, they take two connections. */
function createSessionLookup(database: Database) {
  const find = async (hashes: readonly string[]) => {
    const sessions = await findOpenSessions(
      database,
      hashes.map((hash) => Buffer.from(hash, 'hex')),
    );
    return new Map(sessions.map(({ tokenHash, session }) => [tokenHash.toString('hex'), session]));
  };
  const lookup = createBatchedLookup({ find, maxUnderWay: 2 });
  return async (tokenHash: Buffer) => await lookup(tokenHash.toString('hex'));
}

type SessionTools = {
  findSession: ReturnType<typeof createSessionLookup>;
  context: Pick<PortalContext, 'database' | 'config'>;
  isOperatorAddress: boolean;
};

async function readSession(
  request: FastifyRequest,
  { findSession, context: { database, config }, isOperatorAddress }: SessionTools,
): Promise<void> {
  const token = sessionCookie.read(request);
  const session = token === null ? null : await openSession(findSession, token);
  if (session === null) return;
  if (!isInPlace(request, session.link)) return;
  request.portalFrameOrigin = session.link?.embedOrigin ?? null;
  if (session.link?.isOver) {
    request.portalLinkOver = session.link;
    request.portalBrand = await brandOf(database, session.tenantId);
    return;
  }
  const step = stepOf(config.portal, session);
  if (step === 'over') return;
  // What scripts fetch by themselves is no use.
  const { polled, beforeSecondFactor, pageAccess } = request.routeOptions.config;
  if (!polled) await noteUse({ database }, session);
  const { id, isUseStale: _, isNew: __, ...viewer } = session;
  const found = { id, viewer: { ...viewer, step, isOperatorAddress } };
  // On pages for everybody a link's session is none: it accepts no invitation, and joins nothing.
  const isElsewhere = session.link !== null && pageAccess === 'open';
  if (!isElsewhere && (step === 'whole' || beforeSecondFactor)) request.portalSession = found;
  else request.portalAwaiting = found;
}

/** Default deny: only what the route declares and the viewer fulfils is let through. */
async function checkAccess(
  request: FastifyRequest,
  reply: FastifyReply,
  database: Database,
): Promise<unknown> {
  const { pageAccess } = request.routeOptions.config;
  if (pageAccess === 'open') return;
  const viewer = viewerIfAny(request);
  const over = request.portalLinkOver;
  if (viewer === null && over !== null) return sendPage(reply, linkOverPage('session', over), 403);
  if (viewer === null) {
    const wanted = request.method === 'GET' ? request.url : '/portal';
    const step = request.portalAwaiting?.viewer.step;
    return reply.redirect(step === undefined ? signInPath(wanted) : secondStepPath(step, wanted), 303);
  }
  const { url = '' } = request.routeOptions;
  const isPermitted = pageAccess === 'operator' || mayUse(viewer.link, request.method, url);
  if (pageAccess === 'signedIn' && isPermitted) return;
  if (isOperatorElsewhere(viewer)) throw pageNotFound();
  await findPageWaba(request, viewer, database);
  if (!isPermitted) throw capabilityRefused();
  if (viewer.role === 'operator') return;
  await refuseSuspendedChange(request, viewer, database);
  if (pageAccess === 'member' || (pageAccess === 'admin' && viewer.role === 'admin')) return;
  throw roleRefused();
}

/** A suspended business reads as before. Throws PageError 403. */
async function refuseSuspendedChange(
  { method, routeOptions }: FastifyRequest,
  { tenantId }: Viewer,
  database: Database,
): Promise<void> {
  if (LOOKING.has(method) || routeOptions.config.isSearch || tenantId === null) return;
  if (await isSuspended(database, tenantId)) throw tenantSuspended();
}

const WABA_ID = /^\d{1,64}$/;

/** A WABA of another tenant, or one that the portal link leaves out, is what one is that does not exist. */
async function findPageWaba(request: FastifyRequest, viewer: Viewer, database: Database): Promise<void> {
  const { wabaId } = request.params as { wabaId?: string };
  if (wabaId === undefined) return;
  const waba = WABA_ID.test(wabaId) ? await findWaba(database, wabaId) : null;
  const isTheirs =
    viewer.role === 'operator' || (waba?.tenantId === viewer.tenantId && seesWaba(viewer.link, wabaId));
  if (waba === null || !isTheirs) throw pageNotFound();
  request.portalWaba = { wabaId, tenantId: waba.tenantId, businessName: waba.businessName };
}

const LOOKING = new Set(['GET', 'HEAD']);

/** Looks at what the browser says of the origin before the body is read, at the token after. Throws PageError 403. */
export function refuseForeignForms(scope: FastifyInstance, tokens: FormTokens, publicUrl: string): void {
  const publicOrigin = new URL(publicUrl);
  scope.addHook('onRequest', async (request) => {
    if (!LOOKING.has(request.method) && !isFromHere(request, publicOrigin)) throw formRefused();
  });
  scope.addHook('preValidation', async (request) => {
    if (LOOKING.has(request.method)) return;
    const token = takeToken(request.body);
    if (token === null || !tokens.isRight(request, token)) throw formRefused();
  });
}

/** Browsers send at least one of the two headers with each form, and scripts cannot set either. */
function isFromHere(request: FastifyRequest, publicOrigin: URL): boolean {
  const { origin, 'sec-fetch-site': site } = request.headers;
  if (site !== undefined && site !== 'same-origin') return false;
  if (origin === undefined) return site !== undefined;
  if (origin === publicOrigin.origin) return true;
  // This machine's own address, or a second name, may be used too; the public name is the public origin and no other.
  return request.host !== publicOrigin.host && origin === `${request.protocol}://${request.host}`;
}

/** Takes the token out of the body, so that schemas of forms need not speak of it. */
function takeToken(body: unknown): string | null {
  if (typeof body !== 'object' || body === null || !('_csrf' in body)) return null;
  const field = body._csrf;
  delete body._csrf;
  // A field of a form with files is an object.
  const value = typeof field === 'object' && field !== null && 'value' in field ? field.value : field;
  return typeof value === 'string' ? value : null;
}
