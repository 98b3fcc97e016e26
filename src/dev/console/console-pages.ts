import type { PortalApp, PortalContext } from '../../api/portal/portal-app.ts';
import { consoleActions } from './console-actions.ts';
import { consoleViews } from './console-views.ts';
import { takeMultipartForms } from './multipart-form.ts';
import { createSandboxClient } from './sandbox-client.ts';

/** The sandbox console. There is none in production mode, and none without a sandbox. */
export function sandboxPages(app: PortalApp, context: PortalContext): void {
  const { mode, sandbox } = context.config;
  if (mode !== 'development' || sandbox.controlUrl === '' || sandbox.receiverUrl === '') return;
  const client = createSandboxClient(sandbox);
  // Every page then leads to the console.
  app.decorate('portalSandbox', true);
  app.register(async (scope: PortalApp) => {
    takeMultipartForms(scope);
    consoleViews(scope, context, client);
    consoleActions(scope, context, client);
  });
}
