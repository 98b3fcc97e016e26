import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { sendPage } from '../access/send-page.ts';
import type { Markup } from '../markup.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { type Place, Visit } from './visit.ts';

/** What pages may have behind their path, as a schema. */
export function queryOf(names: readonly string[]) {
  const text = Type.Optional(Type.String({ maxLength: 2_048 }));
  const address = Type.Optional(Type.String());
  const schemaOf = (name: string) => (name === 'next' ? address : text);
  return Type.Object(
    Object.fromEntries(['done', ...names].map((name): [string, typeof text] => [name, schemaOf(name)])),
  );
}

/** A page, a path to go to, or a response that was sent already. */
export type Next = PageView | string | FastifyReply;

export function follow(reply: FastifyReply, next: Next, active: string): FastifyReply {
  if (typeof next === 'string') return reply.redirect(next, 303);
  return 'title' in next ? sendPage(reply, { active, ...next }) : next;
}

type ViewPage = Place & {
  /** The parameters that it reads. */
  query?: readonly string[];
  view: (visit: Visit) => Next | Promise<Next>;
};

/** A page that shows something and changes nothing. */
export function viewPage(
  app: PortalApp,
  context: PortalContext,
  { path, access, active, query = [], view }: ViewPage,
): void {
  const schema = { querystring: queryOf(query) };
  app.get(path, { config: access, schema }, async (request, reply) =>
    follow(reply, await view(new Visit(request, reply, context)), active),
  );
}

type Download = Omit<Place, 'active'> & { send: (visit: Visit) => Promise<FastifyReply> };

export function download(app: PortalApp, context: PortalContext, { path, access, send }: Download): void {
  app.get(path, { config: access }, async (request, reply) => send(new Visit(request, reply, context)));
}

type LivePiece = Omit<Place, 'active'> & { piece: (visit: Visit) => Promise<Markup> };

/** A piece of a page that a script fetches again and again. */
export function livePiece(app: PortalApp, context: PortalContext, { path, access, piece }: LivePiece): void {
  app.get(path, { config: { ...access, polled: true } }, async (request, reply) => {
    const markup = await piece(new Visit(request, reply, context));
    return reply.type('text/html; charset=utf-8').send(markup.toString());
  });
}
