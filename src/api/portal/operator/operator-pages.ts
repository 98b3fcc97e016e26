import type { PortalApp, PortalContext } from '../portal-app.ts';
import { healthPage } from './health-page.ts';
import { removalPages } from './removal-pages.ts';
import { settingsPage } from './settings-page.ts';
import { tenantPages } from './tenant-pages.ts';
import { operatorUserPages } from './user-pages.ts';
import { wabaPages } from './waba-pages.ts';

/** What operators look after: the installation, its tenants and their WABAs. */
export function operatorPages(app: PortalApp, context: PortalContext): void {
  healthPage(app, context);
  tenantPages(app, context);
  wabaPages(app, context);
  removalPages(app, context);
  operatorUserPages(app, context);
  settingsPage(app, context);
}
