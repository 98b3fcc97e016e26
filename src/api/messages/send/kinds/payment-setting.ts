import { type TProperties, Type } from 'typebox';
import { strict, text } from './schema-parts.ts';

const Notes = Type.Object({}, { additionalProperties: Type.String({ maxLength: 256 }), maxProperties: 15 });

const gateway = <Name extends string, Own extends TProperties>(type: Name, own: Own) =>
  strict({
    type: Type.Literal(type),
    configuration_name: text(60),
    preferred_payment_methods: Type.Optional(Type.Array(strict({ method: text(100) }), { maxItems: 20 })),
    enabled_payment_options: Type.Optional(Type.Array(Type.Enum(['upi', 'web']), { maxItems: 2 })),
    ...own,
  });

const numbered = (names: readonly string[], maxLength: number) =>
  Type.Optional(strict(Object.fromEntries(names.map((name) => [name, Type.Optional(text(maxLength))]))));

const Gateway = Type.Union([
  gateway('razorpay', {
    razorpay: Type.Optional(strict({ receipt: Type.Optional(text(40)), notes: Type.Optional(Notes) })),
  }),
  gateway('payu', { payu: numbered(['udf1', 'udf2', 'udf3', 'udf4'], 255) }),
  gateway('billdesk', {
    billdesk: numbered(
      [1, 2, 3, 4, 5, 6, 7].map((n) => `additional_info${n}`),
      120,
    ),
  }),
  gateway('zaakpay', { zaakpay: numbered(['extra1', 'extra2'], 180) }),
]);

/** One way to pay: through a gateway (which reports payments), by UPI, or by a link. */
export const PaymentSetting = Type.Union([
  strict({ type: Type.Literal('payment_gateway'), payment_gateway: Gateway }),
  strict({
    type: Type.Literal('upi_intent_link'),
    upi_intent_link: strict({ link: Type.String({ pattern: '^upi://', maxLength: 4_096 }) }),
  }),
  strict({ type: Type.Literal('payment_link'), payment_link: strict({ uri: text(4_096) }) }),
]);
