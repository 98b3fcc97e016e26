/** So many are counted for pages that show several counts; a page must not take longer because more waits. */
export const MAX_SHOWN_WAITING = 10_000;

/** A bounded count for people: `12`, or `100,000+` when counting stopped there. */
export function shownCount({ count, more }: { count: number; more: boolean }): string {
  return `${count.toLocaleString('en-US')}${more ? '+' : ''}`;
}
