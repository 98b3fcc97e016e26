import { listTemplates, type MessageTemplate } from '../../../features/accounts/templates.ts';
import { PAGES } from '../access/page-access.ts';
import { timeAgo } from '../components/time.ts';
import { listPage } from '../kits/list-page.ts';
import { html } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';

/** The message templates of a WABA as the service knows them. */
export function templatePages(app: PortalApp, context: PortalContext): void {
  listPage<MessageTemplate>(app, context, {
    path: '/portal/w/:wabaId/templates',
    access: PAGES.member,
    active: 'templates',
    title: 'Message templates',
    lead: 'Copied from upstream once a day, and kept up to date by its reports.',
    columns: [
      { label: 'Name', cell: ({ name }) => name },
      { label: 'Language', kind: 'narrow', cell: ({ language }) => language },
      { label: 'State', cell: stateOf },
      { label: 'Category', cell: ({ category }) => category ?? 'unknown' },
      { label: 'Quality', kind: 'narrow', cell: ({ quality }) => quality ?? 'unknown' },
      { label: 'Changed', kind: 'narrow', cell: ({ updatedAt }, { now }) => timeAgo(updatedAt, now) },
    ],
    pageSize: 50,
    filters: [{ name: 'name', label: 'Name' }],
    find: async ({ context: { database }, waba }, { filters: { name = '' }, after, limit }) =>
      await listTemplates(database, waba.wabaId, name === '' ? {} : { name }, { after: after ?? [], limit }),
    positionOf: ({ name, language, templateId }) => [name, language, templateId],
    empty: {
      title: 'No message templates known',
      text: 'They are copied within a day after the access token was saved.',
    },
  });
}

function stateOf({ status, rejectedReason }: MessageTemplate) {
  const state = status ?? 'unknown';
  return rejectedReason === null ? state : html`${state}: ${rejectedReason}`;
}
