import type { Figures } from '../report/figures.ts';
import { alignedTable, type Column } from '../report/table.ts';
import { PEERS, type PeerName, type Scenario, scenarioOfPeer } from '../scenarios.ts';

/** What the product is compared in with its peers, each in its turn. */
const COMPARED = ['message-50', 'message-200', 'message-400', 'message-800', 'burst', 'flood'];

/** The scenarios of a comparison: of each, first the product and then every peer. */
export function comparedScenarios(all: readonly Scenario[]): Scenario[] {
  return COMPARED.flatMap((name) => {
    const scenario = all.find((one) => one.name === name);
    if (scenario === undefined) throw new Error(`there is no scenario ${name}`);
    return [scenario, ...PEERS.map((peer) => scenarioOfPeer(scenario, peer))];
  });
}

type Comparison = { scenario: string; peer: PeerName; ours: Figures; theirs: Figures };

const ratio = (ours: number, theirs: number) => (theirs > 0 ? (ours / theirs).toFixed(2) : '-');

const COLUMNS: readonly Column<Comparison>[] = [
  { title: 'Heliograph / peer', of: ({ scenario, peer }) => `${scenario} / ${peer}` },
  { title: 'p50', of: ({ ours, theirs }) => ratio(ours.latencyMs.p50, theirs.latencyMs.p50) },
  { title: 'p95', of: ({ ours, theirs }) => ratio(ours.latencyMs.p95, theirs.latencyMs.p95) },
  { title: 'p99', of: ({ ours, theirs }) => ratio(ours.latencyMs.p99, theirs.latencyMs.p99) },
  { title: 'out/s', of: ({ ours, theirs }) => ratio(ours.eventsPerSecond, theirs.eventsPerSecond) },
];

/** Each peer that was measured beside the product: below 1 the product is quicker, but for `out/s`. */
export function comparisonText(all: readonly Figures[]): string {
  const byName = new Map(all.map((figures) => [figures.scenario, figures]));
  const rows = COMPARED.flatMap((scenario) =>
    PEERS.flatMap((peer) => {
      const [ours, theirs] = [byName.get(scenario), byName.get(`${scenario}/${peer}`)];
      return ours === undefined || theirs === undefined ? [] : [{ scenario, peer, ours, theirs }];
    }),
  );
  return rows.length === 0 ? '' : `\n${alignedTable(COLUMNS, rows).join('\n')}\n`;
}
