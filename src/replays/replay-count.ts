import type { SelectedGroup } from './replay-selection.ts';

/** What a replay would send. `skipped` is beside `deliveries`, not part of it. */
export type ReplayCount = {
  deliveries: number;
  byType: Record<string, number>;
  byEndpoint: Record<string, number>;
  oldest: Date | null;
  newest: Date | null;
  skipped: { open: number; noBody: number; endpointGone: number };
};

/** Sums up the groups of a selection. */
export function countOf(groups: readonly SelectedGroup[]): ReplayCount {
  const wanted = groups.filter(({ obstacle }) => obstacle === null);
  const skippedFor = (name: SelectedGroup['obstacle']) =>
    totalOf(groups.filter(({ obstacle }) => obstacle === name));
  return {
    deliveries: totalOf(wanted),
    byType: tally(wanted, ({ eventType }) => eventType ?? 'unknown'),
    byEndpoint: tally(wanted, ({ endpointId }) => endpointId),
    oldest: wanted.reduce<Date | null>((at, { oldest }) => (at === null || oldest < at ? oldest : at), null),
    newest: wanted.reduce<Date | null>((at, { newest }) => (at === null || newest > at ? newest : at), null),
    skipped: {
      open: skippedFor('open'),
      noBody: skippedFor('no_body'),
      endpointGone: skippedFor('endpoint_gone'),
    },
  };
}

/** Deliveries in all of these groups. */
export function totalOf(groups: readonly SelectedGroup[]): number {
  return groups.reduce((total, { deliveries }) => total + deliveries, 0);
}

function tally(
  groups: readonly SelectedGroup[],
  nameOf: (group: SelectedGroup) => string,
): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const group of groups) counts[nameOf(group)] = (counts[nameOf(group)] ?? 0) + group.deliveries;
  return counts;
}
