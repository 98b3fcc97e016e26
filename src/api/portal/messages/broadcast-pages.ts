import {
  type Broadcast,
  broadcastWorkflowId,
} from '../../../features/messages/broadcasts/broadcast-store.ts';
import {
  type BroadcastView,
  broadcastOf,
  broadcastsOf,
  changeBroadcast,
} from '../../../features/messages/broadcasts/broadcasts.ts';
import { namedTemplate } from '../../../features/messages/send/sent-template.ts';
import { PAGES, withoutFreshProof } from '../access/page-access.ts';
import type { Viewer } from '../access/viewer.ts';
import { actionButton } from '../components/form.ts';
import { detailList } from '../components/table.ts';
import { exactTime, timeAgo } from '../components/time.ts';
import { workflowRow } from '../components/workflow-link.ts';
import { action } from '../kits/action.ts';
import { type ListColumn, listPage } from '../kits/list-page.ts';
import { livePiece, viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { BROADCAST, broadcastDraftPages, draftLinks } from './broadcast-draft-pages.ts';
import { broadcastBadge, broadcastProgress, number } from './broadcast-view.ts';
import { BROADCASTS, broadcastTrail, NEW_BROADCAST, newBroadcastPages } from './new-broadcast-pages.ts';

const COLUMNS: ListColumn<Broadcast>[] = [
  {
    label: 'Broadcast',
    cell: ({ id, name }, { path }) => html`<a class="break" href="${path}/${id}">${name}</a>`,
  },
  { label: 'Status', kind: 'narrow', cell: ({ state }) => broadcastBadge(state) },
  { label: 'Template', cell: (broadcast) => templateCell(broadcast) },
  { label: 'Your number', kind: 'narrow', cell: ({ phoneNumberId }) => phoneNumberId },
  {
    label: 'Queued',
    kind: 'number',
    cell: ({ recipients, pending }) => `${number(recipients - pending)} of ${number(recipients)}`,
  },
  { label: 'Requested by', cell: ({ requestedBy }) => requestedBy },
  { label: 'Created', kind: 'narrow', cell: ({ createdAt }, { now }) => timeAgo(createdAt, now) },
];

function templateCell({ template }: Pick<Broadcast, 'template'>): Markup {
  const { name, language } = namedTemplate(JSON.parse(template));
  return html`<span class="break">${name}</span> <span class="faint">${language}</span>`;
}

const DONE = {
  start: 'The broadcast is started.',
  pause: 'The broadcast is paused.',
  resume: 'The broadcast is resumed.',
  cancel: 'The broadcast is cancelled.',
};

export function broadcastPages(app: PortalApp, context: PortalContext): void {
  newBroadcastPages(app, context);
  broadcastDraftPages(app, context);
  const place = { access: PAGES.member, active: 'broadcasts' };
  listPage(app, context, {
    ...place,
    path: BROADCASTS,
    title: 'Broadcasts',
    lead: 'One template to many customers.',
    add: { label: 'New broadcast', path: NEW_BROADCAST, isPrimary: true },
    columns: COLUMNS,
    empty: {
      title: 'No broadcasts yet',
      text: 'Broadcasts that you or your API create appear here. Nothing is sent before one is started.',
    },
    pageSize: 50,
    find: async ({ waba }, wanted) => await broadcastsOf(context, waba.wabaId, wanted),
    positionOf: ({ id }) => [id],
  });
  const find = async ({ waba, id }: Visit) => await broadcastOf(context, waba.wabaId, id);
  viewPage(app, context, {
    ...place,
    path: BROADCAST,
    view: async (visit) => {
      const { path, viewer } = visit;
      const broadcast = await find(visit);
      const progress = broadcastProgress(broadcast);
      const isMoving = broadcast.state === 'running' || broadcast.state === 'scheduled';
      return {
        title: broadcast.name,
        trail: broadcastTrail(visit),
        actions: visit.mayChange && visit.mayUse(`${path}/cancel`) && buttons(viewer, path, broadcast),
        done: DONE,
        assets: ['webhooks.css'],
        body: html`${isMoving ? html`<div data-live="${path}/progress" data-live-ms="2000">${progress}</div>` : progress}
<div class="card">${detailList(facts(visit, broadcast))}</div>`,
      };
    },
  });
  livePiece(app, context, {
    path: `${BROADCAST}/progress`,
    access: PAGES.member,
    piece: async (visit) => broadcastProgress(await find(visit)),
  });
  for (const verb of ['pause', 'resume', 'cancel'] as const) {
    const stops = verb === 'pause' || verb === 'cancel';
    action(app, context, {
      path: `${BROADCAST}/${verb}`,
      access: stops ? withoutFreshProof(PAGES.admin, 'it stops sending') : PAGES.admin,
      act: async (visit) => {
        const ids = { wabaId: visit.waba.wabaId, broadcastId: visit.id };
        await changeBroadcast(visit.tools, ids, verb, null);
        return `${visit.at(BROADCAST)}?done=${verb}`;
      },
    });
  }
}

function buttons(viewer: Viewer, path: string, { state, recipients }: Broadcast): Markup | null {
  if (state === 'done' || state === 'cancelled') return null;
  const change =
    state === 'draft'
      ? draftLinks(viewer, path, recipients)
      : state === 'paused'
        ? actionButton(viewer, `${path}/resume`, 'Resume', 'primary')
        : actionButton(viewer, `${path}/pause`, 'Pause');
  return html`${change}${actionButton(viewer, `${path}/cancel`, 'Cancel the broadcast', 'danger')}`;
}

function facts(visit: Visit, broadcast: BroadcastView): [string, Child][] {
  return [
    ['Template', templateCell(broadcast)],
    ['Your number', broadcast.phoneNumberId],
    ['Requested by', broadcast.requestedBy],
    ['Begins', exactTime(broadcast.sendAt, 'at its start')],
    ['Created', exactTime(broadcast.createdAt)],
    ['Started', exactTime(broadcast.startedAt)],
    ['Finished', exactTime(broadcast.finishedAt)],
    ...workflowRow(visit, broadcastWorkflowId(broadcast.id)),
  ];
}
