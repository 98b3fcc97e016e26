/** The upstream operations that a fault can hit. */
export const FAULT_TARGETS = [
  'media_lookup',
  'media_download',
  'media_upload',
  'send',
  'catalog',
  'templates',
  'payments',
  'thread_control',
  'upload_session',
  'phone_numbers',
  'code_exchange',
  'token_debug',
  'waba_subscription',
  'registration',
  'app_state_sync',
] as const;

type FaultTarget = (typeof FAULT_TARGETS)[number];

/** What goes wrong. */
type FaultKind = 'slow' | 'status' | 'wrong_hash' | 'gone' | 'reset' | 'endless' | 'too_large' | 'expired';

/** A fault that the next matching requests meet. */
export type FaultRequest = {
  match: FaultTarget;
  kind: FaultKind;
  /** Media id, phone number id, catalog id or account id; without it every object is hit. */
  id?: string;
  /** HTTP status of kind `status`; 503 unless told. */
  status?: number;
  /** Upstream error code of kind `status`. */
  code?: number;
  /** Wait of kind `slow`; pause between chunks of kind `endless`. */
  delayMs?: number;
  /** How many requests are hit; without it all, until the faults are cleared. */
  times?: number;
  /** Of `send`: the message is accepted all the same, only the answer goes wrong. */
  accepted?: boolean;
};

/** A fault in force. */
export type Fault = FaultRequest & { faultId: string; hits: number };

/** The JSON schema of FaultRequest. */
export const faultRequestSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['match', 'kind'],
  properties: {
    match: { enum: FAULT_TARGETS },
    kind: { enum: ['slow', 'status', 'wrong_hash', 'gone', 'reset', 'endless', 'too_large', 'expired'] },
    id: { type: 'string', minLength: 1, maxLength: 64 },
    status: { type: 'integer', minimum: 400, maximum: 599 },
    code: { type: 'integer' },
    delayMs: { type: 'integer', minimum: 0, maximum: 600_000 },
    times: { type: 'integer', minimum: 1 },
    accepted: { type: 'boolean' },
  },
} as const;

const MEDIA_ONLY: readonly FaultKind[] = ['wrong_hash', 'too_large', 'expired'];

/** Why a fault makes no sense, or undefined when it does. */
export function faultProblem(fault: FaultRequest): string | undefined {
  if (MEDIA_ONLY.includes(fault.kind) && !['media_lookup', 'media_download'].includes(fault.match)) {
    return `${fault.kind} is possible for media_lookup and media_download only.`;
  }
  if (fault.accepted !== undefined && fault.match !== 'send') {
    return 'accepted is possible for send only.';
  }
  return undefined;
}

/** The faults of one server. */
export type FaultRegister = {
  add: (fault: FaultRequest) => Fault;
  list: () => Fault[];
  clear: () => number;
  /** The first fault for this request, counted as a hit; undefined when all is well. */
  take: (match: FaultTarget, id: string) => Fault | undefined;
};

/** Creates an empty register. */
export function createFaultRegister(): FaultRegister {
  let faults: Fault[] = [];
  let lastNumber = 0;
  const isSpent = (fault: Fault) => fault.times !== undefined && fault.hits >= fault.times;
  return {
    add: (request) => {
      lastNumber += 1;
      const fault = { ...request, faultId: `fault-${lastNumber}`, hits: 0 };
      faults.push(fault);
      return fault;
    },
    list: () => faults.map((fault) => ({ ...fault })),
    clear: () => {
      const count = faults.length;
      faults = [];
      return count;
    },
    take: (match, id) => {
      const fault = faults.find(
        (one) => one.match === match && !isSpent(one) && (one.id === undefined || one.id === id),
      );
      if (fault !== undefined) {
        fault.hits += 1;
      }
      return fault;
    },
  };
}
