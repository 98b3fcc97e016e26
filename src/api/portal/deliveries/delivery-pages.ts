import { PAGES, searchOf } from '../access/page-access.ts';
import { wabaOf } from '../access/viewer.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import {
  ALL_DELIVERIES,
  DeliverySearchForm,
  deliveriesOf,
  redirectToDeliveries,
  sendDeliveryList,
  sendDeliveryRows,
} from './delivery-list.ts';
import { deliveryActions, deliveryPage } from './delivery-page.ts';
import { deliverySelection, operatorDeliverySelection } from './delivery-selection.ts';

/** What was sent of one WABA, and every attempt. */
export function deliveryPages(app: PortalApp, context: PortalContext): void {
  app.get('/portal/w/:wabaId/deliveries', { config: PAGES.member }, async (request, reply) =>
    sendDeliveryList(request, reply, context, deliveriesOf(wabaOf(request))),
  );
  const search = { config: searchOf(PAGES.member), schema: { body: DeliverySearchForm } };
  app.post('/portal/w/:wabaId/deliveries/search', search, async (request, reply) =>
    redirectToDeliveries(request, reply, deliveriesOf(wabaOf(request))),
  );
  const rows = { config: { ...PAGES.member, polled: true } };
  app.get('/portal/w/:wabaId/deliveries/rows', rows, async (request, reply) =>
    sendDeliveryRows(request, reply, context, deliveriesOf(wabaOf(request))),
  );
  deliveryPage(app, context);
  deliveryActions(app, context);
  deliverySelection(app, context);
}

/** What was sent of all WABAs; one delivery is shown on the page that its tenant has. */
export function operatorDeliveryPages(app: PortalApp, context: PortalContext): void {
  app.get('/portal/operator/deliveries', { config: PAGES.operator }, async (request, reply) =>
    sendDeliveryList(request, reply, context, ALL_DELIVERIES),
  );
  const search = { config: searchOf(PAGES.operator), schema: { body: DeliverySearchForm } };
  app.post('/portal/operator/deliveries/search', search, async (request, reply) =>
    redirectToDeliveries(request, reply, ALL_DELIVERIES),
  );
  const rows = { config: { ...PAGES.operator, polled: true } };
  app.get('/portal/operator/deliveries/rows', rows, async (request, reply) =>
    sendDeliveryRows(request, reply, context, ALL_DELIVERIES),
  );
  operatorDeliverySelection(app, context);
}
