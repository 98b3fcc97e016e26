import { Type } from 'typebox';
import { workflowUrl } from '../../../platform/temporal/workflow-url.ts';
import { replayWorkflowId } from '../../../replays/replay-store.ts';
import { type ReplayView, replayOf, switchReplay } from '../../../replays/replays.ts';
import { accountObjectId } from '../../external/object-id.ts';
import { PAGES } from '../access/page-access.ts';
import { sendPage } from '../access/send-page.ts';
import { type Viewer, viewerOf } from '../access/viewer.ts';
import { wabaOf } from '../access/waba-of.ts';
import { actionButton } from '../components/form.ts';
import { noticeAfter } from '../components/notice.ts';
import { detailList } from '../components/table.ts';
import { exactTime } from '../components/time.ts';
import { mayChange, toolsOf } from '../endpoints/endpoint-context.ts';
import { formValues } from '../form-values.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { progressView, replaysPath, selectionText } from './replay-view.ts';

const PATH = '/portal/w/:wabaId/replays/:id';
const Params = Type.Object({ wabaId: Type.String(), id: Type.String() });
const MAX_IDS_SHOWN = 20;

const DONE = {
  pause: 'The replay is paused.',
  resume: 'The replay is resumed.',
  cancel: 'The replay is cancelled. Its pending deliveries are dropped.',
};

/** GET /portal/w/:wabaId/replays/:id, POST …/pause, …/resume and …/cancel */
export function replayPage(app: PortalApp, context: PortalContext): void {
  const options = { config: PAGES.member, schema: { params: Params } };
  app.get(PATH, options, async (request, reply) => {
    const waba = wabaOf(request);
    const viewer = viewerOf(request);
    const replay = await replayOf(context, waba.wabaId, accountObjectId(request.params.id));
    const path = `${replaysPath(waba.wabaId)}/${replay.replayId}`;
    const isOver = (replay.state === 'done' || replay.state === 'cancelled') && replay.outcomes.pending === 0;
    const progress = progressView(replay);
    return sendPage(reply, {
      title: `Replay ${replay.replayId}`,
      ...{ viewer, waba },
      active: 'replays',
      lead: selectionText(replay),
      trail: [{ label: 'Replays', href: replaysPath(waba.wabaId) }],
      actions: mayChange(viewer) && buttons(viewer, path, replay),
      notice: noticeAfter(formValues(request.query).text('done'), DONE),
      assets: ['webhooks.css'],
      body: html`${isOver ? progress : html`<div data-live="${path}/progress" data-live-ms="2000">${progress}</div>`}
<div class="card">${detailList(facts(context, viewer, replay))}</div>`,
    });
  });
  const polled = { ...options, config: { ...PAGES.member, polled: true } };
  app.get(`${PATH}/progress`, polled, async (request, reply) => {
    const replay = await replayOf(context, wabaOf(request).wabaId, accountObjectId(request.params.id));
    return reply.type('text/html; charset=utf-8').send(progressView(replay).toString());
  });
  for (const action of ['pause', 'resume', 'cancel'] as const) {
    const changing = { config: PAGES.admin, schema: { params: Params } };
    app.post(`${PATH}/${action}`, changing, async (request, reply) => {
      const { wabaId } = wabaOf(request);
      const id = accountObjectId(request.params.id);
      await switchReplay(toolsOf(request, context), wabaId, id, action);
      return reply.redirect(`${replaysPath(wabaId)}/${id}?done=${action}`, 303);
    });
  }
}

function buttons(viewer: Viewer, path: string, { state }: ReplayView): Markup | null {
  if (state === 'done' || state === 'cancelled') return null;
  const change =
    state === 'running'
      ? actionButton(viewer, `${path}/pause`, 'Pause')
      : actionButton(viewer, `${path}/resume`, 'Resume', 'primary');
  return html`${change}${actionButton(viewer, `${path}/cancel`, 'Cancel the replay', 'danger')}`;
}

function facts({ config }: PortalContext, viewer: Viewer, replay: ReplayView): [string, Child][] {
  const { deliveryIds } = replay.selection;
  const rows: [string, Child][] = [
    ['Requested by', replay.requestedBy],
    ['Started', exactTime(replay.createdAt)],
    ['Finished', exactTime(replay.finishedAt)],
  ];
  if (deliveryIds !== null && deliveryIds.length > 0) {
    const base = `/portal/w/${encodeURIComponent(replay.wabaId)}/deliveries`;
    const links = deliveryIds
      .slice(0, MAX_IDS_SHOWN)
      .map((id) => html`<a class="mono" href="${base}/${id}">${id}</a><br>`);
    const more = deliveryIds.length - links.length;
    rows.push(['Deliveries', html`${links}${more > 0 && `and ${more} more`}`]);
  }
  const workflowId = replayWorkflowId(replay.replayId);
  const url = workflowUrl(config.temporal, workflowId);
  if (viewer.role === 'operator' && url !== null) {
    rows.push(['Workflow', html`<a class="mono" href="${url}" rel="noreferrer">${workflowId}</a>`]);
  }
  return rows;
}
