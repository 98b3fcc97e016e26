export const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'Makes a repetition harmless: the first answer is given again. 1 to 255 visible ASCII characters, kept for 48 hours.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
  example: 'order-7-ready',
};
