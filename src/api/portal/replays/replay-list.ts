import { type ReplayView, replaysOf } from '../../../replays/replays.ts';
import { PAGES } from '../access/page-access.ts';
import { pageNotFound } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { viewerOf } from '../access/viewer.ts';
import { wabaOf } from '../access/waba-of.ts';
import { emptyState } from '../components/empty-state.ts';
import { pager } from '../components/pager.ts';
import { dataTable } from '../components/table.ts';
import { timeAgo } from '../components/time.ts';
import { mayChange } from '../endpoints/endpoint-context.ts';
import { formValues } from '../form-values.ts';
import { type Child, html } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { replayBadge, replaysPath, selectionText } from './replay-view.ts';

const SHOWN = 50;

const COLUMNS = [
  { label: 'Replay', kind: 'narrow' },
  { label: 'Status', kind: 'narrow' },
  { label: 'Selection' },
  { label: 'Queued', kind: 'number' },
  { label: 'Skipped', kind: 'number' },
  { label: 'Requested by' },
  { label: 'Started', kind: 'narrow' },
  { label: 'Finished', kind: 'narrow' },
] as const;

/** GET /portal/w/:wabaId/replays: the newest first. */
export function replayListPage(app: PortalApp, context: PortalContext): void {
  const { cursors } = context;
  app.get('/portal/w/:wabaId/replays', { config: PAGES.member }, async (request, reply) => {
    const waba = wabaOf(request);
    const viewer = viewerOf(request);
    const path = replaysPath(waba.wabaId);
    const cursor = formValues(request.query).text('cursor');
    const scope = [waba.wabaId, 'portal replays'];
    const beforeId = cursor === '' ? null : cursors.decode(scope, cursor)?.[0];
    if (beforeId === undefined) throw pageNotFound();
    const found = await replaysOf(context, waba.wabaId, { beforeId, limit: SHOWN + 1 });
    const shown = found.slice(0, SHOWN);
    const last = found.length > SHOWN ? shown.at(-1) : undefined;
    const add = mayChange(viewer) && html`<a class="button primary" href="${path}/new">New replay</a>`;
    return sendPage(reply, {
      title: 'Replays',
      ...{ viewer, waba },
      active: 'replays',
      lead: 'A replay sends events again: those that failed while a server was down, or all of a period.',
      actions: found.length > 0 && add,
      body:
        found.length === 0
          ? emptyState(
              'No replay yet',
              'A replay sends deliveries again. It starts with a dry run, and you can pause and cancel it.',
              add,
            )
          : html`${dataTable(
              'Replays',
              COLUMNS,
              shown.map((replay) => rowOf(path, replay, new Date(context.now()))),
            )}${pager({ firstHref: cursor === '' ? null : path, nextHref: last === undefined ? null : `${path}?cursor=${cursors.encode(scope, [last.replayId])}` })}`,
    });
  });
}

function rowOf(path: string, replay: ReplayView, now: Date): Child[] {
  const number = (value: number) => value.toLocaleString('en-US');
  return [
    html`<a href="${path}/${replay.replayId}">${replay.replayId}</a>`,
    replayBadge(replay.state),
    selectionText(replay),
    `${number(replay.queued)} of ${number(replay.total)}`,
    number(replay.skipped),
    replay.requestedBy,
    timeAgo(replay.createdAt, now),
    timeAgo(replay.finishedAt, now),
  ];
}
