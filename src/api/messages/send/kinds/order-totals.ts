import type { Problem } from './problem.ts';
import type { AmountValue } from './schema-parts.ts';

type Order = {
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
export function checkOrderTotals({ total_amount: total, order }: Order, path: string): Problem | null {
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
