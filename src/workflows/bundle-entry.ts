// biome-ignore lint/performance/noBarrelFile: the workflow bundler needs one module that exports every workflow.
export { deliverEvent } from './deliver-event.ts';
export { enrichOrder } from './enrich-order.ts';
export { storeInboundMedia } from './store-inbound-media.ts';
