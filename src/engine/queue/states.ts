/**
 * Where a pending delivery stands. The head of a lane (endpoint and ordering key) is its one row that is not `queued`; only
 * heads are attempted. The table in docs/architecture.md has every way from one state to another.
 */
export type QueueState =
  /** Behind another of its lane. */
  | 'queued'
  /** Head; its event has no body yet (an order waits for the catalog), or it waits for others that go out with it. */
  | 'unreleased'
  /** Head; its replay is paused. */
  | 'suspended'
  /** Head; may be claimed. */
  | 'due'
  /** Head; waits for `next_attempt_at`. Its run makes the attempt at that time, or a delivery loop seconds later. */
  | 'retrying'
  /** Head; an attempt holds it until `lease_until`. */
  | 'claimed';

/**
 * SQL that a row that is named by its ctid, position or delivery is in this state, so written that no partial index serves for
 * it: by the statistics of an empty queue to read all rows of the state would be cheaper than to go to the row.
 */
export const rowIs = (state: 'claimed' | 'due' | 'retrying' | 'unreleased', row = 'delivery_queue') =>
  `${row}.state || '' = '${state}'`;
