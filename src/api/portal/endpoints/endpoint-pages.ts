import type { PortalApp, PortalContext } from '../portal-app.ts';
import { alertPages } from './alert-pages.ts';
import { endpointDeletePages, endpointModeActions, endpointSecretActions } from './endpoint-actions.ts';
import { endpointCreatePages, endpointEditPages } from './endpoint-edit.ts';
import { endpointListPage } from './endpoint-list.ts';
import { endpointPage } from './endpoint-page.ts';
import { testEventPages } from './test-event-pages.ts';
import { urlCheckFragment } from './url-check.ts';

/** Everything about a WABA's webhook endpoints and the alerts that tell of them. */
export function endpointPages(app: PortalApp, context: PortalContext): void {
  endpointListPage(app, context);
  endpointCreatePages(app, context);
  urlCheckFragment(app, context);
  alertPages(app, context);
  endpointPage(app, context);
  endpointEditPages(app, context);
  endpointModeActions(app, context);
  endpointSecretActions(app, context);
  endpointDeletePages(app, context);
  testEventPages(app, context);
}
