import { searchOf } from '../access/page-access.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import {
  DELIVERY_PLACES,
  DeliverySearchForm,
  redirectToDeliveries,
  scopeOf,
  sendDeliveryList,
  sendDeliveryRows,
} from './delivery-list.ts';
import { deliveryActions, deliveryPage } from './delivery-page.ts';
import { deliverySelection } from './delivery-selection.ts';

/** What was sent, and every attempt: of one WABA, and of all for operators. One delivery has one page, that of its tenant. */
export function deliveryPages(app: PortalApp, context: PortalContext): void {
  for (const { path, access } of DELIVERY_PLACES) {
    app.get(path, { config: access }, async (request, reply) =>
      sendDeliveryList(request, reply, context, scopeOf(request)),
    );
    const search = { config: searchOf(access), schema: { body: DeliverySearchForm } };
    app.post(`${path}/search`, search, async (request, reply) =>
      redirectToDeliveries(request, reply, scopeOf(request)),
    );
    app.get(`${path}/rows`, { config: { ...access, polled: true } }, async (request, reply) =>
      sendDeliveryRows(request, reply, context, scopeOf(request)),
    );
  }
  deliveryPage(app, context);
  deliveryActions(app, context);
  deliverySelection(app, context);
}
