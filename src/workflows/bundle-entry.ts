// biome-ignore lint/performance/noBarrelFile: x
export { deliverEvent } from './deliver-event.ts';
