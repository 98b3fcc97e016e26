import type { Client } from '@temporalio/client';
import type { Logger } from '../../../platform/logger.ts';
import { type Loop, startLoop } from '../../../platform/loop.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { startOrReplace } from '../../../platform/temporal/start-workflow.ts';
import { NEWS_SIGNAL, searchAttributes } from '../../../platform/temporal/workflow-options.ts';
import { ifOpen, inTime, listWorkflows } from '../../../platform/temporal/workflow-states.ts';
import { endpointIdOfWorkflow, listEndpointsInTrouble, troubleWorkflowId } from '../../queue/trouble.ts';
import type { AttemptObserver } from '../attempt/settle-attempts.ts';
import type { ReportedFailure } from '../trouble/look.ts';

export type EndpointTroubleInput = { endpointId: string; failure: ReportedFailure | null };

/** A report for a run; `opens`: it is started where none is open. */
type Note = { opens: boolean; failure: ReportedFailure | null };

type WatchTools = {
  client: Client;
  database: Database;
  logger: Logger;
  taskQueue: string;
  isLeader: () => boolean;
};

const TYPE = 'endpointTrouble';
const RUNNING = `WorkflowType = "${TYPE}" AND ExecutionStatus = "Running"`;

/** However many endpoints are in trouble: the others wait for their turn. */
const SIGNALS_PER_TURN = 10;
const REST_MS = 5_000;
const WALK_EVERY_MS = 30_000;
const FULL_WALK_EVERY_MS = 3_600_000;

/**
 * Sees to it that an endpoint in trouble has its run of `endpointTrouble`, and the run learns of changes. Those who
 * change an endpoint signal it, so the watch asks PostgreSQL nothing while nothing changes. One process of all looks in
 * Temporal whether runs got lost, and walks over the endpoints when it becomes the leader, when Temporal was away, and
 * once an hour.
 */
export class TroubleWatch {
  readonly #notes = new Map<string, Note>();
  /** Of attempts that their endpoints do not show yet. */
  #attempted = new Map<string, Note>();
  readonly #restUntilMs = new Map<string, number>();
  #isLeader = false;
  /** Endpoints whose run was there after the last walk. */
  #running: ReadonlySet<string> = new Set();
  #walkAtMs = 0;
  #fullWalkAtMs = 0;

  /** An attempt was recorded: a failure opens a run, a later success may end it, once their endpoint shows them. */
  attempted: AttemptObserver = ({ endpoint, eventType, attempts }, outcome) => {
    if (outcome === null || eventType === 'test') return;
    const failure = outcome.state === 'delivered' ? null : { atMs: Date.now(), reason: outcome.reason };
    if (failure !== null || attempts > 0)
      addNote(this.#attempted, endpoint.id, { opens: failure !== null, failure });
  };

  /**
   * For who notes of endpoints how their attempts went: what is returned passes on the attempts until now. A run that
   * looked earlier would show another state, and the right one only at its next look.
   */
  attemptedSoFar(): () => void {
    const attempted = this.#attempted;
    this.#attempted = new Map();
    return () => {
      for (const [id, note] of attempted) addNote(this.#notes, id, note);
    };
  }

  /** Something was done about an endpoint; every process is notified, and one passes it on. */
  changed(endpointId: string): void {
    if (this.#isLeader) this.#note(endpointId, { opens: false, failure: null });
  }

  /** Events wait for these endpoints, which take none. */
  closed(endpointIds: readonly string[]): void {
    for (const id of endpointIds) this.#note(id, { opens: true, failure: null });
  }

  /** Temporal lost its runs. */
  lost(): void {
    this.#walkAtMs = 0;
    this.#fullWalkAtMs = 0;
  }

  /** Runs while Temporal is there. */
  start(tools: WatchTools): Loop {
    const turn = async () => {
      if (tools.isLeader() !== this.#isLeader) this.lost();
      this.#isLeader = tools.isLeader();
      for (const [id, untilMs] of this.#restUntilMs)
        if (untilMs <= performance.now()) this.#restUntilMs.delete(id);
      const due = [...this.#notes].filter(([id]) => !this.#restUntilMs.has(id)).slice(0, SIGNALS_PER_TURN);
      for (const [id, note] of due) await this.#tell(tools, id, note);
      if (this.#isLeader && performance.now() >= this.#walkAtMs) await this.#walk(tools);
      return false;
    };
    return startLoop({ name: 'trouble-watch', logger: tools.logger, turn });
  }

  #note(id: string, note: Note): void {
    addNote(this.#notes, id, note);
  }

  async #tell({ client, taskQueue }: WatchTools, id: string, note: Note): Promise<void> {
    this.#notes.delete(id);
    this.#restUntilMs.set(id, performance.now() + REST_MS);
    try {
      const signal = { signal: NEWS_SIGNAL, signalArgs: [note.failure] };
      await inTime(client, async () => {
        if (note.opens) await client.workflow.signalWithStart(TYPE, { ...startOf(taskQueue, id), ...signal });
        else await ifOpen(client.workflow.getHandle(troubleWorkflowId(id)).signal(NEWS_SIGNAL, null));
      });
    } catch (error) {
      this.#note(id, { ...note, failure: this.#notes.get(id)?.failure ?? note.failure });
      this.lost();
      throw error;
    }
  }

  /** Looks in Temporal which runs are there. PostgreSQL is asked for the endpoints of those that are gone, or for all. */
  async #walk({ client, database, logger, taskQueue }: WatchTools): Promise<void> {
    const nowMs = performance.now();
    const isFull = nowMs >= this.#fullWalkAtMs;
    const running = new Set<string>();
    for await (const runs of listWorkflows(client, RUNNING, 200))
      for (const run of runs)
        if (run.taskQueue === taskQueue) running.add(endpointIdOfWorkflow(run.workflowId));
    const gone = [...this.#running].filter((id) => !running.has(id));
    const started: string[] = [];
    const isNothingToDo = !isFull && gone.length === 0;
    for await (const id of isNothingToDo ? [] : listEndpointsInTrouble(database, isFull ? null : gone)) {
      const start = { client, logger, workflowType: TYPE, options: startOf(taskQueue, id) };
      await inTime(client, () => startOrReplace(start));
      started.push(id);
    }
    if (isFull) for (const id of running) this.changed(id);
    this.#running = new Set([...running, ...started]);
    this.#walkAtMs = nowMs + WALK_EVERY_MS;
    if (isFull) this.#fullWalkAtMs = nowMs + FULL_WALK_EVERY_MS;
  }
}

function addNote(notes: Map<string, Note>, id: string, { opens, failure }: Note): void {
  const before = notes.get(id);
  notes.set(id, {
    opens: opens || before?.opens === true,
    failure: failure ?? before?.failure ?? null,
  });
}

function startOf(taskQueue: string, endpointId: string) {
  const input: EndpointTroubleInput = { endpointId, failure: null };
  return {
    taskQueue,
    workflowId: troubleWorkflowId(endpointId),
    args: [input],
    workflowIdReusePolicy: 'ALLOW_DUPLICATE' as const,
    typedSearchAttributes: searchAttributes({ endpointId }),
    staticSummary: `webhook endpoint ${endpointId} in trouble`,
    staticDetails:
      'The current details say what waits, why and until when. More Actions, Send an Update: retryNow, pause, enable, skipHead do what the portal does. Cancel and terminate change nothing.',
  };
}
