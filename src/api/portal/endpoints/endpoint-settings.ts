import { type InstallationSettings, installationSettings, textOf } from '../../../engine/endpoint/setting.ts';
import { type AnySetting, settingsOf } from '../../../engine/endpoint/settings.ts';
import type { EndpointView } from '../../../features/endpoints/endpoints.ts';
import { PAGES } from '../access/page-access.ts';
import { detailList } from '../components/table.ts';
import { exactTime } from '../components/time.ts';
import { viewPage } from '../kits/view-page.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { ENDPOINT_PATH, endpointShell } from './endpoint-shell.ts';

/** GET …/endpoints/:id/settings */
export function endpointSettingsPage(app: PortalApp, context: PortalContext): void {
  const defaults = installationSettings(context.config);
  viewPage(app, context, {
    path: `${ENDPOINT_PATH}/settings`,
    access: PAGES.member,
    active: 'endpoints',
    view: async (visit) =>
      await endpointShell(visit, 'settings', ({ endpoint, path }) => {
        const links =
          visit.mayUse(`${path}/filter`) &&
          html`<p><a href="${path}/filter">Try a content filter on recent events</a></p>`;
        const remove = html`<h2>Delete</h2><p><a class="button danger" href="${path}/delete">Delete this endpoint</a></p>`;
        return html`<div class="card">${settingsList(endpoint, defaults)}${links}</div>${visit.mayChange && visit.mayUse(`${path}/delete`) && remove}`;
      }),
  });
}

/** Every setting of an endpoint, also those that were left to the defaults. */
export function settingsList(endpoint: EndpointView, defaults: InstallationSettings): Markup {
  const rows = settingsOf('what', 'order', 'signature', 'retries', 'limits').map(
    ([name, setting]): [string, Child] => [
      setting.portal.label,
      shownValue(setting, endpoint[name], defaults),
    ],
  );
  return detailList([
    ['Id', html`<code>${endpoint.id}</code>`],
    ...rows,
    ['Custom headers', headerText(endpoint.customHeaderNames)],
    ['Created', exactTime(endpoint.createdAt)],
    ['Changed', exactTime(endpoint.updatedAt)],
  ]);
}

function shownValue({ portal }: AnySetting, value: unknown, defaults: InstallationSettings): Child {
  if (value === null || value === undefined) return byDefault(textOf(portal.byDefault, defaults));
  const text = portal.show?.(value) ?? (Array.isArray(value) ? value.join(', ') : String(value));
  return portal.isMonospaced ? html`<span class="mono">${text}</span>` : text;
}

function headerText(names: readonly string[] | null): Child {
  if (names === null) return 'not readable: their encryption key is missing';
  return names.length === 0 ? byDefault('none') : html`<span class="mono">${names.join(', ')}</span>`;
}

function byDefault(text: string): Markup {
  return html`${text} <span class="faint">(default)</span>`;
}
