export const DELIVERY_ERROR_CODES = {
  delivery_settled: {
    status: 409,
    message: 'The delivery is delivered, failed or dropped.',
    advice: 'No attempt follows. POST /api/external/events/{id}/replay sends it again.',
  },
  attempt_under_way: {
    status: 409,
    message: 'An attempt is in progress; check again in a moment.',
    advice: 'Wait for its outcome: GET /api/external/events/{id} shows it.',
  },
  delivery_not_first: {
    status: 409,
    message: 'The delivery waits behind an earlier one of its ordering key.',
    advice: 'Retry or drop the delivery that "message" names; the others follow it in their order.',
  },
  delivery_held: {
    status: 409,
    message: 'The delivery may not be sent yet.',
    advice:
      'Its order waits for catalog data, which takes a moment, its message waits for others of its conversation, or its replay is paused: resume the replay.',
  },
  test_event_pending: {
    status: 409,
    message: 'The test event with this eventId is still being delivered.',
    advice: 'Send it again after its outcome: GET /api/external/events/{id} shows it.',
  },
  deliveries_pending: {
    status: 409,
    message: 'The order scope changes only while no delivery of the endpoint is pending.',
    advice:
      'Nothing was changed. Send it again when the pending deliveries are delivered or dropped; deliveries that stepped aside do not count.',
  },
  buffer_needs_conversation_order: {
    status: 422,
    message: 'Messages can be buffered only where the order scope is the conversation.',
    advice:
      'Send "orderScope": "conversation" with "bufferSeconds", or "bufferSeconds": 0 with another order scope.',
  },
  endpoint_not_enabled: {
    status: 409,
    message: 'The endpoint is paused or disabled.',
    advice: 'POST /api/external/webhook-endpoints/{id}/enable sends the pending deliveries.',
  },
};
