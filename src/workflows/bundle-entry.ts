// biome-ignore lint/performance/noBarrelFile: the workflow bundler needs one module that exports every workflow.
export { approveApiKey } from './approve-api-key.ts';
export { deliverEvent } from './deliver-event.ts';
export { deliverSession } from './deliver-session.ts';
export { endpointTrouble } from './endpoint-trouble.ts';
export { enrichOrder } from './enrich-order.ts';
export { eraseConversation, eraseCustomer, eraseTenant, eraseUser, eraseWaba } from './erase.ts';
export { refreshAllNumbers, refreshNumbers } from './refresh-numbers.ts';
export { replayDeliveries } from './replay-deliveries.ts';
export { sendBroadcast } from './send-broadcast.ts';
export { sendEndpointAlert } from './send-endpoint-alert.ts';
export { sendMail } from './send-mail.ts';
export { sendMessage } from './send-message.ts';
export { sendScheduled } from './send-scheduled.ts';
export { setUpNumber } from './set-up-number.ts';
export { storeInboundMedia } from './store-inbound-media.ts';
