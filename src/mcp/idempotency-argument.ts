/** By which a tool takes what the API has as a header. */
export const IDEMPOTENCY_ARGUMENT = 'idempotencyKey';
