import type { PortalApp, PortalContext } from '../portal-app.ts';
import { replayListPage } from './replay-list.ts';
import { replayPage } from './replay-page.ts';
import { replayWizard } from './replay-wizard.ts';

/** Everything about sending deliveries of a WABA again. */
export function replayPages(app: PortalApp, context: PortalContext): void {
  replayListPage(app, context);
  replayWizard(app, context);
  replayPage(app, context);
}
