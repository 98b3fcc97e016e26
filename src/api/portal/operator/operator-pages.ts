import type { Setting } from '../../../platform/config/setting.ts';
import { SETTINGS, type SettingName } from '../../../platform/config/settings.ts';
import { PAGES } from '../access/page-access.ts';
import { setupLinkPages } from '../accounts/setup-link-pages.ts';
import { tenantPages } from '../accounts/tenant-pages.ts';
import { wabaPages } from '../accounts/waba-pages.ts';
import { dataTable } from '../components/table.ts';
import { viewPage } from '../kits/view-page.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { healthPage } from './health-page.ts';
import { platformKeyPages } from './platform-key-pages.ts';

export function operatorPages(app: PortalApp, context: PortalContext): void {
  healthPage(app, context);
  tenantPages(app, context);
  wabaPages(app, context);
  setupLinkPages(app, context);
  platformKeyPages(app, context);
  settingsPage(app, context);
}

/** GET /portal/operator/settings: the settings that this API process runs with; secrets are not among them. */
function settingsPage(app: PortalApp, context: PortalContext): void {
  const names = Object.keys(SETTINGS) as SettingName[];
  viewPage(app, context, {
    path: '/portal/operator/settings',
    access: PAGES.operator,
    active: 'operator/settings',
    view: () => ({
      title: 'Settings',
      lead: 'The settings of this API process. Change them in its environment and restart it.',
      body: dataTable(
        'Settings',
        ['Name', 'Value', { label: '', kind: 'narrow' }],
        names.map((name) => settingRow(name, context.settings[name] ?? '')),
      ),
    }),
  });
}

function settingRow(name: SettingName, value: string): Markup[] {
  const { fallback = '' }: Setting = SETTINGS[name];
  return [
    html`<code>${name}</code>`,
    value === '' ? html`<span class="faint">not set</span>` : html`<code class="break">${value}</code>`,
    value === fallback ? html`<span class="faint">default</span>` : html`set`,
  ];
}
