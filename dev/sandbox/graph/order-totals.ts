type Amount = { value: number };

type OrderAmounts = {
  total_amount: Amount;
  order?: {
    items?: { amount: Amount; sale_amount?: Amount; quantity: number }[];
    subtotal: Amount;
    tax?: Amount;
    shipping?: Amount;
    discount?: Amount;
  };
};

/** The platform refuses an order whose sums do not add up; in integers of any size, never in floating point. */
export function orderTotalProblem(parameters: Record<string, unknown>): string | null {
  const { total_amount: total, order } = parameters as unknown as OrderAmounts;
  if (order === undefined) return null;
  const { items, subtotal, tax, shipping, discount } = order;
  const ofItems = items?.reduce(
    (sum, item) => sum + amountOf(item.sale_amount ?? item.amount) * BigInt(item.quantity),
    0n,
  );
  if (ofItems !== undefined && ofItems !== amountOf(subtotal)) {
    return `The items come to ${ofItems}: the sum of (sale_amount or amount) × quantity`;
  }
  const expected = amountOf(subtotal) + amountOf(tax) + amountOf(shipping) - amountOf(discount);
  if (expected === amountOf(total)) return null;
  return `The order comes to ${expected}: subtotal + tax + shipping − discount`;
}

function amountOf(amount: Amount | undefined): bigint {
  return BigInt(amount?.value ?? 0);
}
