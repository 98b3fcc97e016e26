import { PAGES, searchOf } from '../access/page-access.ts';
import { wabaOf } from '../access/viewer.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import {
  type DeliveryScope,
  DeliverySearchForm,
  redirectToDeliveries,
  sendDeliveryList,
  sendDeliveryRows,
} from './delivery-list.ts';
import { deliveryActions, deliveryPage } from './delivery-page.ts';
import { deliverySelection } from './delivery-selection.ts';

/** What was sent of one WABA, and every attempt. */
export function deliveryPages(app: PortalApp, context: PortalContext): void {
  const scopeOf = (waba: ReturnType<typeof wabaOf>): DeliveryScope => ({
    waba,
    path: `/portal/w/${encodeURIComponent(waba.wabaId)}/deliveries`,
    active: 'deliveries',
  });
  app.get('/portal/w/:wabaId/deliveries', { config: PAGES.member }, async (request, reply) =>
    sendDeliveryList(request, reply, context, scopeOf(wabaOf(request))),
  );
  const search = { config: searchOf(PAGES.member), schema: { body: DeliverySearchForm } };
  app.post('/portal/w/:wabaId/deliveries/search', search, async (request, reply) =>
    redirectToDeliveries(request, reply, scopeOf(wabaOf(request))),
  );
  const rows = { config: { ...PAGES.member, polled: true } };
  app.get('/portal/w/:wabaId/deliveries/rows', rows, async (request, reply) =>
    sendDeliveryRows(request, reply, context, scopeOf(wabaOf(request))),
  );
  deliveryPage(app, context);
  deliveryActions(app, context);
  deliverySelection(app, context);
}

/** What was sent of all WABAs; one delivery is shown on the page that its tenant has. */
export function operatorDeliveryPages(app: PortalApp, context: PortalContext): void {
  const scope: DeliveryScope = {
    waba: null,
    path: '/portal/operator/deliveries',
    active: 'operator/deliveries',
  };
  app.get('/portal/operator/deliveries', { config: PAGES.operator }, async (request, reply) =>
    sendDeliveryList(request, reply, context, scope),
  );
  const search = { config: searchOf(PAGES.operator), schema: { body: DeliverySearchForm } };
  app.post('/portal/operator/deliveries/search', search, async (request, reply) =>
    redirectToDeliveries(request, reply, scope),
  );
  const rows = { config: { ...PAGES.operator, polled: true } };
  app.get('/portal/operator/deliveries/rows', rows, async (request, reply) =>
    sendDeliveryRows(request, reply, context, scope),
  );
}
