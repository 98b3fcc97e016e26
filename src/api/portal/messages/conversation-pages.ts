import type { PortalApp, PortalContext } from '../portal-app.ts';
import { conversationListPage } from './conversation-list.ts';
import { conversationPage } from './conversation-page.ts';

/** The threads of a WABA. */
export function conversationPages(app: PortalApp, context: PortalContext): void {
  conversationListPage(app, context);
  conversationPage(app, context);
}
