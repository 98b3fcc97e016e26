import { fileURLToPath } from 'node:url';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance } from 'fastify';
import { guardBodies } from '../shares/client-shares.ts';
import { accessPages } from './access/access-pages.ts';
import { requirePortalAccess } from './access/portal-access.ts';
import { policyPages } from './accounts/policy-pages.ts';
import { alertsPages } from './alerts/alerts-pages.ts';
import { ASSET_DIRECTORY, ASSET_PREFIX } from './asset-urls.ts';
import { auditPages } from './audit/audit-pages.ts';
import { brandFiles } from './brand/brand-files.ts';
import { optOutPages } from './customers/opt-out-pages.ts';
import { optOutWordsPage } from './customers/opt-out-words-page.ts';
import { deliveryPages } from './deliveries/delivery-page.ts';
import { endpointPages } from './endpoints/endpoint-pages.ts';
import { eventTypePages } from './endpoints/event-type-pages.ts';
import { erasurePages } from './erasures/erasure-pages.ts';
import { approvalPages } from './keys/approval-pages.ts';
import { keyPages } from './keys/key-pages.ts';
import { broadcastPages } from './messages/broadcast-pages.ts';
import { conversationPages } from './messages/conversation-pages.ts';
import { scheduledPages } from './messages/scheduled-pages.ts';
import { operatorPages } from './operator/operator-pages.ts';
import { overviewPages } from './overview/overview-page.ts';
import type { PortalApp, PortalContext } from './portal-app.ts';
import { replayPages } from './replays/replay-pages.ts';
import { templatePages } from './templates/template-pages.ts';
import { usagePages } from './usage/usage-pages.ts';

/** Forms are read before anybody has signed in. */
const BODY_LIMITS = { maxBytes: 64 * 1024 * 1024, maxBytesPerOwner: 16 * 1024 * 1024 };

export async function portalRoutes(scope: PortalApp, context: PortalContext): Promise<void> {
  await scope.register(fastifyStatic, {
    root: fileURLToPath(ASSET_DIRECTORY),
    prefix: ASSET_PREFIX,
    cacheControl: false,
    index: false,
    setHeaders: (reply) => reply.header('cache-control', 'public, max-age=31536000, immutable'),
  });
  await scope.register(async (pages: PortalApp) => {
    guardBodies(pages as unknown as FastifyInstance, BODY_LIMITS);
    await requirePortalAccess(pages, context);
    accessPages(pages, context);
    brandFiles(pages, context);
    overviewPages(pages, context);
    alertsPages(pages, context);
    endpointPages(pages, context);
    deliveryPages(pages, context);
    replayPages(pages, context);
    eventTypePages(pages, context);
    conversationPages(pages, context);
    scheduledPages(pages, context);
    broadcastPages(pages, context);
    optOutPages(pages, context);
    optOutWordsPage(pages, context);
    templatePages(pages, context);
    usagePages(pages, context);
    erasurePages(pages, context);
    keyPages(pages, context);
    approvalPages(pages, context);
    auditPages(pages, context);
    policyPages(pages, context);
    operatorPages(pages, context);
    context.consolePages?.(pages, context);
  });
}
