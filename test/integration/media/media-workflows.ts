// biome-ignore lint/performance/noBarrelFile: the workflow bundler needs one module that exports every workflow.
export { enrichOrder } from '../../../src/workflows/enrich-order.ts';
export { storeInboundMedia } from '../../../src/workflows/store-inbound-media.ts';
