/**
 * Where a pending delivery stands. The head of a lane (endpoint and ordering key) is its one row that is not `queued`; only
 * heads are attempted.
 */
export type QueueState =
  /** Behind another of its lane. */
  | 'queued'
  /** Head; its event has no body yet (an order waits for the catalog). */
  | 'unreleased'
  /** Head; its replay is paused. */
  | 'suspended'
  /** Head; may be claimed. */
  | 'due'
  /** Head; waits for `next_attempt_at`. Its run makes the attempt at that time, or a delivery loop seconds later. */
  | 'retrying'
  /** Head; an attempt holds it until `lease_until`. */
  | 'claimed';

/** `new` and `gone` are the two ends: no row before, no row afterwards. */
export type Transition = {
  from: readonly (QueueState | 'new')[];
  to: readonly (QueueState | 'gone')[];
  by: string;
  when: string;
};

const HEADS = ['unreleased', 'suspended', 'due', 'retrying', 'claimed'] as const;

/** Every way from one state to another. docs/architecture.md has the same table, and a test compares them. */
export const TRANSITIONS: readonly Transition[] = [
  {
    from: ['new'],
    to: ['queued', 'unreleased', 'due'],
    by: 'publish (`enqueue_deliveries`): intake, `storeInboundMedia`, sends; replays, in lanes of their own',
    when: 'behind a head; or first of its lane, and its event has a body or not',
  },
  {
    from: ['new'],
    to: ['claimed'],
    by: 'publish with a direct claim',
    when: 'first of its lane, released; the endpoint is `open` and has a free slot',
  },
  { from: ['new'], to: ['retrying'], by: 'the `test` event', when: 'in a lane of its own' },
  {
    from: ['queued'],
    to: ['unreleased', 'suspended', 'due'],
    by: 'promote (`promote_next`)',
    when: 'first of its lane; its head was locked, then settled, removed or moved aside in the same transaction',
  },
  {
    from: ['queued'],
    to: ['claimed'],
    by: 'promote, for the process that settled the head',
    when: 'the same; released, and the endpoint is `open`',
  },
  { from: ['unreleased'], to: ['due'], by: 'release (`enrichOrder`)', when: 'its event got its body' },
  { from: ['due'], to: ['suspended'], by: 'pause of its replay', when: 'no attempt has it' },
  { from: ['suspended'], to: ['due'], by: 'resume of its replay', when: 'its replay is paused no more' },
  {
    from: ['due'],
    to: ['claimed'],
    by: 'claim',
    when: 'the endpoint is `open`; its share; first attempts before replays',
  },
  {
    from: ['due'],
    to: ['claimed'],
    by: 'claim of a probe',
    when: 'the endpoint is `probing` and its probe is due',
  },
  {
    from: ['retrying'],
    to: ['due'],
    by: 'release of retries',
    when: 'its time has come; 3 s later where a run shows it and Temporal is there; at once when asked for (retry now), or when its endpoint is back after trouble',
  },
  {
    from: ['due', 'retrying'],
    to: ['claimed'],
    by: 'claim of one delivery, for the activity of its workflow',
    when: 'its time has come; the endpoint is `open`, or it is the `test` event',
  },
  {
    from: ['claimed'],
    to: ['retrying'],
    by: 'settle (`settle_and_follow`)',
    when: 'the token matches; the attempt failed and there is another',
  },
  {
    from: ['claimed'],
    to: ['due'],
    by: 'settle, or return of a claim',
    when: 'the token matches; the endpoint is not `open` (any more), or too little time was left to send',
  },
  {
    from: ['claimed'],
    to: ['due'],
    by: 'the sweep',
    when: 'its lease has ended',
  },
  {
    from: ['retrying'],
    to: ['retrying'],
    by: 'step aside, into a lane of its own',
    when: 'it has failed for its block limit and others wait behind it ([0040](decisions/0040-step-aside.md))',
  },
  {
    from: ['queued', 'unreleased', 'due', 'retrying'],
    to: ['queued'],
    by: 'move to the lanes of another order scope (`apply_order_scope`)',
    when: 'the endpoint is paused or disabled and no attempt is under way; the first of each lane is promoted at once',
  },
  {
    from: ['claimed'],
    to: ['gone'],
    by: 'settle, in the transaction that records the attempt',
    when: 'the token matches; delivered or failed permanently',
  },
  {
    from: ['queued', ...HEADS],
    to: ['gone'],
    by: 'remove (`remove_deliveries`): dropped, given up, replay cancelled, endpoint or event gone',
    when: '`claimed`: the lease has ended, or the token matches, or the endpoint is gone',
  },
];
