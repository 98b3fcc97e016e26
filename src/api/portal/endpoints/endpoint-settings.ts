import type { EndpointView } from '../../../endpoints/endpoint-view.ts';
import { type InstallationSettings, textOf } from '../../../endpoints/setting.ts';
import { type AnySetting, settingsOf } from '../../../endpoints/settings.ts';
import { detailList } from '../components/table.ts';
import { exactTime } from '../components/time.ts';
import { type Child, html, type Markup } from '../markup.ts';

/** Every setting of an endpoint, also those that were left to the defaults. */
export function settingsList(endpoint: EndpointView, defaults: InstallationSettings): Markup {
  const { wantedOrderScope } = endpoint;
  const rows = settingsOf('what', 'order', 'signature', 'retries', 'limits').map(
    ([name, setting]): [string, Child] => {
      const shown = shownValue(setting, endpoint[name], defaults);
      const isWaiting = name === 'orderScope' && wantedOrderScope !== null;
      const wanted = html`${shown}; by ${wantedOrderScope} once nothing of the present order is open, or while it is paused`;
      return [setting.portal.label, isWaiting ? wanted : shown];
    },
  );
  return detailList([
    ['Id', html`<code>${endpoint.id}</code>`],
    ...rows,
    ['Your own headers', headerText(endpoint.customHeaderNames)],
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
