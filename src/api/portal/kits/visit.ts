import type { FastifyContextConfig, FastifyReply, FastifyRequest } from 'fastify';
import type { Visitor } from '../../../features/users/sign-in.ts';
import { type Actor, type Audited, recordReads } from '../../../platform/audit/audit.ts';
import { accountObjectId } from '../../external/schema-kit.ts';
import { mayUse } from '../access/link-access.ts';
import {
  actorOf,
  sessionOf,
  type Viewer,
  type ViewerSession,
  viewerIfAny,
  viewerOf,
  visitorOf,
  wabaOf,
} from '../access/viewer.ts';
import { formValues } from '../form-values.ts';
import type { PortalContext } from '../portal-app.ts';

/** Where a page is: its path, its audience (one of `PAGES`), and its entry in the navigation. */
export type Place = { path: string; access: Access; active: string };

type Access = FastifyContextConfig & Required<Pick<FastifyContextConfig, 'pageAccess'>>;

/** One request, as the functions of a description see it. */
export class Visit {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly context: PortalContext;
  readonly route: string;
  constructor(
    request: FastifyRequest,
    reply: FastifyReply,
    context: PortalContext,
    route = request.routeOptions.url ?? '',
  ) {
    this.request = request;
    this.reply = reply;
    this.context = context;
    this.route = route;
  }

  /** The same request on another page, which shows a form that was sent elsewhere. */
  on(route: string): Visit {
    return new Visit(this.request, this.reply, this.context, route);
  }

  /** Throws on open pages. */
  get viewer(): Viewer {
    return viewerOf(this.request);
  }

  /** Throws on open pages. */
  get session(): ViewerSession {
    return sessionOf(this.request);
  }

  get visitor(): Visitor {
    return visitorOf(this.request);
  }

  /** What a form of the page carries; on open pages it may set a cookie. */
  get formToken(): Pick<Viewer, 'csrfToken'> & { link?: Viewer['link'] } {
    const { request, reply } = this;
    return viewerIfAny(request) ?? request.server.portalFormTokens.issue(request, reply);
  }

  /** The WABA in the path. Throws on pages without `:wabaId`. */
  get waba(): ReturnType<typeof wabaOf> {
    return wabaOf(this.request);
  }

  /** Its id; null on pages of all WABAs. */
  get wabaId(): string | null {
    return this.request.portalWaba?.wabaId ?? null;
  }

  get mayChange(): boolean {
    return this.viewer.role !== 'member';
  }

  /** Whether the portal link of the session permits a page, or with POST a form; without a link, as `mayChange` and the page say. */
  mayUse(path: string, method = 'GET'): boolean {
    return mayUse(this.viewer.link, method, path);
  }

  /** The tenant of that WABA; null on pages of all tenants. */
  get tenantId(): string | null {
    return this.request.portalWaba?.tenantId ?? null;
  }

  /** The `:id` of the path. Throws ApiError 404 where it cannot be one. */
  get id(): string {
    return accountObjectId(this.param('id'));
  }

  param(name: string): string {
    return (this.request.params as Readonly<Record<string, string>>)[name] ?? '';
  }

  get tools(): PortalContext['accounts'] & Audited {
    return { ...this.context.accounts, actor: this.actor };
  }

  get actor(): Actor {
    return actorOf(this.request);
  }

  /** Writes down that an operator reads what customers wrote; a tenant's own users are not noted. Once an hour for each target. */
  async noteRead(action: string, target: string): Promise<void> {
    await this.#noteReads(action, [{ wabaId: this.waba.wabaId, target }]);
  }

  /** As `noteRead`, for a list or a search, for each WABA of which it shows something. What was searched for is not noted. */
  async noteListRead(action: string, wabaIds: readonly string[]): Promise<void> {
    const reads = [...new Set(wabaIds)].map((wabaId) => ({ wabaId, target: `WABA ${wabaId}` }));
    await this.#noteReads(action, reads);
  }

  async #noteReads(action: string, reads: readonly { wabaId: string; target: string }[]): Promise<void> {
    if (this.viewer.role !== 'operator' || reads.length === 0) return;
    await recordReads(this.context.database, this.actor, action, reads);
  }

  get now(): Date {
    return new Date(this.context.now());
  }

  get path(): string {
    return this.at(this.route);
  }

  /** The path of a route, with the parameters that this page has: `/portal/w/:wabaId/keys`. */
  at(route: string): string {
    return route.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(this.param(name)));
  }

  /** A parameter behind the path; '' when it is missing. */
  query(name: string): string {
    return formValues(this.request.query).text(name);
  }

  /** A parameter that the form of the page carries along in a hidden field of the same name. */
  carried(name: string): string {
    return formValues(this.request.body).text(name) || this.query(name);
  }
}
