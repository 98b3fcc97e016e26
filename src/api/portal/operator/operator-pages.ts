import { removalPages } from '../accounts/removal-pages.ts';
import { tenantPages } from '../accounts/tenant-pages.ts';
import { wabaPages } from '../accounts/waba-pages.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { operatorUserPages } from '../users/user-pages.ts';
import { healthPage } from './health-page.ts';
import { settingsPage } from './settings-page.ts';

/** What operators look after: the installation, its tenants and their WABAs. */
export function operatorPages(app: PortalApp, context: PortalContext): void {
  healthPage(app, context);
  tenantPages(app, context);
  wabaPages(app, context);
  removalPages(app, context);
  operatorUserPages(app, context);
  settingsPage(app, context);
}
