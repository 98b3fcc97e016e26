import { type Static, type TProperties, Type } from 'typebox';
import { exactlyOne, firstProblem, type Problem } from '../problems.ts';
import {
  Amount,
  type AmountValue,
  Body,
  interactiveKind,
  MediaSource,
  strict,
  text,
} from './message-kind.ts';

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
const PaymentSetting = Type.Union([
  strict({ type: Type.Literal('payment_gateway'), payment_gateway: Gateway }),
  strict({
    type: Type.Literal('upi_intent_link'),
    upi_intent_link: strict({ link: Type.String({ pattern: '^upi://', maxLength: 4_096 }) }),
  }),
  strict({ type: Type.Literal('payment_link'), payment_link: strict({ uri: text(4_096) }) }),
]);

const Address = strict({
  name: Type.Optional(text(256)),
  address_line1: text(256),
  address_line2: Type.Optional(text(256)),
  city: Type.Optional(text(256)),
  zone_code: Type.Optional(text(256)),
  state: Type.Optional(text(256)),
  country: Type.Optional(text(256)),
  country_code: Type.Optional(text(256)),
  postal_code: Type.Optional(text(256)),
});

const Item = strict({
  retailer_id: Type.Optional(text(256)),
  name: text(60),
  image: Type.Optional(MediaSource),
  amount: Amount,
  sale_amount: Type.Optional(Amount),
  quantity: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
  country_of_origin: Type.Optional(text(256)),
  importer_name: Type.Optional(text(256)),
  importer_address: Type.Optional(Address),
});

const Order = strict({
  status: Type.Literal('pending'),
  type: Type.Optional(Type.Literal('quick_pay')),
  catalog_id: Type.Optional(text(256)),
  items: Type.Optional(Type.Array(Item, { minItems: 1, maxItems: 999 })),
  subtotal: Amount,
  tax: strict({ ...Amount.properties, description: Type.Optional(text(60)) }),
  shipping: Type.Optional(strict({ ...Amount.properties, description: Type.Optional(text(60)) })),
  discount: Type.Optional(
    strict({
      ...Amount.properties,
      description: Type.Optional(text(60)),
      discount_program_name: Type.Optional(text(60)),
    }),
  ),
  expiration: Type.Optional(
    strict({ timestamp: Type.String({ pattern: '^\\d{10,13}$' }), description: text(120) }),
  ),
});

const Parameters = strict({
  reference_id: Type.String({ pattern: '^[A-Za-z0-9_.-]{1,35}$' }),
  type: Type.Enum(['digital-goods', 'physical-goods']),
  beneficiaries: Type.Optional(Type.Array(Address, { maxItems: 10 })),
  currency: Type.Literal('INR'),
  total_amount: Amount,
  payment_settings: Type.Optional(Type.Array(PaymentSetting, { minItems: 1, maxItems: 10 })),
  payment_type: Type.Optional(text(100)),
  payment_configuration: Type.Optional(text(60)),
  order: Order,
});

/** An invoice that can be paid in the chat (India). */
export const orderDetailsMessage = interactiveKind({
  interactiveType: 'order_details',
  header: { types: ['image'] },
  members: {
    body: Body,
    action: strict({ name: Type.Literal('review_and_pay'), parameters: Parameters }),
  },
  check: ({ action }: { action: { parameters: Static<typeof Parameters> } }, path) =>
    checkParameters(action.parameters, `${path}/action/parameters`),
});

function checkParameters(parameters: Static<typeof Parameters>, path: string): Problem | null {
  const { items = [] } = parameters.order;
  return firstProblem(
    () => exactlyOne(parameters, ['payment_settings', 'payment_configuration'], path),
    () =>
      firstProblem(
        ...items.map(
          ({ image }, index) =>
            () =>
              image === undefined
                ? null
                : exactlyOne(image, ['id', 'link'], `${path}/order/items/${index}/image`),
        ),
      ),
    () => checkOrderTotals(parameters, path),
  );
}

type OrderAmounts = {
  total_amount: AmountValue;
  order: {
    items?: { amount: AmountValue; sale_amount?: AmountValue; quantity: number }[];
    subtotal: AmountValue;
    tax: AmountValue;
    shipping?: AmountValue;
    discount?: AmountValue;
  };
};

/** Upstream refuses an order whose sums do not add up; in integers of any size, never in floating point. */
function checkOrderTotals({ total_amount: total, order }: OrderAmounts, path: string): Problem | null {
  const { items, subtotal, tax, shipping, discount } = order;
  const ofItems = items?.reduce(
    (sum, item) => sum + amountOf(item.sale_amount ?? item.amount) * BigInt(item.quantity),
    0n,
  );
  if (ofItems !== undefined && ofItems !== amountOf(subtotal)) {
    const message = `The items come to ${ofItems}: the sum of (sale_amount or amount) × quantity.`;
    return { param: `${path}/order/subtotal/value`, message };
  }
  const expected = amountOf(subtotal) + amountOf(tax) + amountOf(shipping) - amountOf(discount);
  if (expected === amountOf(total)) return null;
  const message = `The order comes to ${expected}: subtotal + tax + shipping − discount.`;
  return { param: `${path}/total_amount/value`, message };
}

function amountOf(amount: AmountValue | undefined): bigint {
  return BigInt(amount?.value ?? 0);
}
