import type { AdminTools } from '../../platform/cli/admin-action.ts';
import type { ObjectStore } from '../../platform/object-store/object-store.ts';
import type { TemporalConnection } from '../../platform/temporal/client-connection.ts';
import type { TaskKind } from '../../platform/temporal/workflow-tasks.ts';

export type Finding = {
  kind: string;
  what: string;
  found: number;
  fixed: number;
  /** Found and not fixed. */
  left: number;
  examples: string[];
  /** What was done, or what fixes the rest. */
  note: string;
  /** Why the look could not be finished; null: it was. */
  problem: string | null;
};

export type ReconcileOptions = {
  fix: boolean;
  /** Objects that no row names are removed when they are older than this, in ms; null: they stay. */
  removeObjectsAfterMs: number | null;
  /** The database was restored to an earlier moment: numbers that may have been given out since are passed over. */
  rewound: boolean;
};

export type ReconcileTools = AdminTools &
  ReconcileOptions & {
    temporal: TemporalConnection;
    objectStore: ObjectStore;
    /** Of the workflows that rooms have carried out. */
    taskKinds: readonly TaskKind[];
  };

export type Tally = {
  found(example: string, isFixed: boolean): void;
  note(text: string): void;
};

export type Look = {
  kind: string;
  what: string;
  remedy: string;
  run(tools: ReconcileTools, tally: Tally): Promise<void>;
};

const MOST_EXAMPLES = 5;

/** Carries a look out. One that cannot be finished, as when a server is away, stops no other. */
export async function carryOut(look: Look, tools: ReconcileTools): Promise<Finding> {
  const { kind, what, remedy } = look;
  const finding: Finding = {
    kind,
    what,
    found: 0,
    fixed: 0,
    left: 0,
    examples: [],
    problem: null,
    note: remedy,
  };
  const tally: Tally = {
    found: (example, isFixed) => {
      finding.found += 1;
      finding[isFixed ? 'fixed' : 'left'] += 1;
      if (finding.examples.length < MOST_EXAMPLES) finding.examples.push(example);
    },
    note: (text) => {
      finding.note = text;
    },
  };
  try {
    await look.run(tools, tally);
  } catch (error) {
    finding.problem = error instanceof Error ? error.message : String(error);
  }
  return finding;
}

/** Whether something is left to do, or is not known. */
export function isLeft(findings: readonly Finding[]): boolean {
  return findings.some(({ left, problem }) => left > 0 || problem !== null);
}
