/** A bounded count for people: `12`, or `100,000+` when counting stopped there. */
export function shownCount({ count, more }: { count: number; more: boolean }): string {
  return `${count.toLocaleString('en-US')}${more ? '+' : ''}`;
}
