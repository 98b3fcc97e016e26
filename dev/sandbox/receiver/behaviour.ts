/** How the sample tenant treats webhooks with a good signature. */
export type Behaviour = {
  mode: 'ok' | 'status' | 'slow' | 'hang' | 'reset';
  /** Only webhooks at /webhook/:name; without it all. */
  name?: string;
  /** Of mode `status`; 500 unless told. */
  status?: number;
  /** Of mode `slow`, before a 200; 3000 unless told. */
  delayMs?: number;
  /** The Retry-After header of mode `status`: seconds or an HTTP date. */
  retryAfter?: number | string;
  /** After so many webhooks all is well again; without it never. */
  times?: number;
};

/** The JSON schema of Behaviour. */
export const behaviourSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['mode'],
  properties: {
    mode: { enum: ['ok', 'status', 'slow', 'hang', 'reset'] },
    name: { type: 'string', maxLength: 200 },
    status: { type: 'integer', minimum: 200, maximum: 599 },
    delayMs: { type: 'integer', minimum: 0, maximum: 600_000 },
    retryAfter: { type: ['integer', 'string'] },
    times: { type: 'integer', minimum: 1 },
  },
} as const;

/** The behaviours in force: one for all, and one for each name that has its own. */
export type Behaviours = {
  set: (behaviour: Behaviour) => void;
  list: () => Behaviour[];
  /** The behaviour for the next webhook at this name; counts it. */
  take: (name: string) => Behaviour;
};

const ALL = Symbol('all names');
const OK: Behaviour = { mode: 'ok' };

/** Creates the behaviours of a receiver that answers everything with 200. */
export function createBehaviours(): Behaviours {
  const byName = new Map<string | symbol, { behaviour: Behaviour; left: number }>();
  return {
    set: (behaviour) => {
      if (behaviour.name === undefined) {
        // A behaviour for all replaces those of single names too.
        byName.clear();
      }
      byName.set(behaviour.name ?? ALL, { behaviour, left: behaviour.times ?? Number.POSITIVE_INFINITY });
    },
    list: () => [...byName.values()].filter(({ left }) => left > 0).map(({ behaviour }) => behaviour),
    take: (name) => {
      const current = byName.get(name) ?? byName.get(ALL);
      if (current === undefined || current.left <= 0) {
        return OK;
      }
      current.left -= 1;
      return current.behaviour;
    },
  };
}
