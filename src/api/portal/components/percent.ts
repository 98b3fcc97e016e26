/** A share of a hundred; its sign never stands alone on the next line. */
export function percentText(value: number | string): string {
  return `${value}\u00a0%`;
}
