import type { Setting } from '../../../platform/config/setting.ts';
import { SETTINGS, type SettingName } from '../../../platform/config/settings.ts';
import { PAGES } from '../access/page-access.ts';
import { sendPage } from '../access/send-page.ts';
import { tenantPages } from '../accounts/tenant-pages.ts';
import { wabaPages } from '../accounts/waba-pages.ts';
import { dataTable } from '../components/table.ts';
import { html } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { healthPage } from './health-page.ts';

/** The pages of operators: the installation, its tenants and their WABAs. */
export function operatorPages(app: PortalApp, context: PortalContext): void {
  healthPage(app, context);
  tenantPages(app, context);
  wabaPages(app, context);
  settingsPage(app, context);
}

/** GET /portal/operator/settings: the settings that this API process runs with; secrets are not among them. */
function settingsPage(app: PortalApp, { settings }: PortalContext): void {
  app.get('/portal/operator/settings', { config: PAGES.operator }, async (_request, reply) => {
    const names = Object.keys(SETTINGS) as SettingName[];
    const rows = names.map((name) => {
      const value = settings[name] ?? '';
      const definition: Setting = SETTINGS[name];
      const isDefault = value === (definition.fallback ?? '');
      return [
        html`<code>${name}</code>`,
        value === '' ? html`<span class="faint">not set</span>` : html`<code class="break">${value}</code>`,
        isDefault ? html`<span class="faint">default</span>` : 'set',
      ];
    });
    return sendPage(reply, {
      title: 'Settings',
      active: 'operator/settings',
      lead: 'The settings of this API process. Change them in its environment and restart it.',
      body: dataTable('Settings', ['Name', 'Value', { label: '', kind: 'narrow' }], rows),
    });
  });
}
