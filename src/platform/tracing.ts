import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash, randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import packageJson from '../../package.json' with { type: 'json' };
import type { Config } from './config/config.ts';
import type { Logger } from './logger.ts';
import { type ActivityRun, type SpanNote, type TracedEvent, tracing } from './metrics/metrics.ts';
import { publicEventId } from './public-ids.ts';

/** What is sent with one request, what may wait to be sent, and how often it is sent. */
const BATCH = { spans: 500, waiting: 10_000, everyMs: 1_000, withinMs: 10_000 };

/** What the receiver has not taken by then is lost with the process. */
const CLOSE_WITHIN_MS = 1_000;

/** A body or a batch of more is traced in part. */
const MOST_EVENTS = 100;

type SpanContext = { traceId: string; spanId: string };

type Span = SpanContext & {
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: Attribute[];
  links: SpanContext[];
  status: { code: number; message?: string };
};

type Attribute = { key: string; value: object };

type Options = Config['traces'] & {
  service: string;
  logger: Pick<Logger, 'warn' | 'info'>;
  eventsOf: (body: Buffer) => TracedEvent[];
  /** The same for all events of a WABA that share a trace. */
  traceKeyOf: (event: TracedEvent) => string;
};

type RunningActivity = { spanId: string; traces: Set<string>; later: SpanNote[] };

/** Sends what is noted to a receiver of OTLP over HTTP from now on. `close` sends the rest, for a second at most. */
export function startTracing(options: Options): { close(): Promise<void> } {
  const exporter = new Exporter(options);
  const activities = new AsyncLocalStorage<RunningActivity>();
  const isSampled = sampler(options.percent);
  const traceOf = (event: TracedEvent) => traceIdOf(event.wabaId, options.traceKeyOf(event));

  const read = new WeakMap<Buffer, TracedEvent[]>();
  const eventsIn = (body: Buffer) => {
    const events = read.get(body) ?? orNone(() => options.eventsOf(body));
    read.set(body, events);
    return events;
  };

  const note = (span: SpanNote) => {
    const events = Buffer.isBuffer(span.about) ? eventsIn(span.about) : span.about;
    const activity = activities.getStore();
    if (events.length === 0) activity?.later.push(span);
    const traces = [...new Set(events.slice(0, MOST_EVENTS).map(traceOf))].filter(isSampled);
    const attributes = attributesOf(span, events);
    const batch = traces.length > 1 ? newContext() : null;
    const contexts = traces.map((traceId) => {
      activity?.traces.add(traceId);
      const isRoot = span.name === 'receive';
      const spanId = isRoot ? rootSpanId(traceId) : newSpanId();
      const parent = isRoot ? {} : { parentSpanId: activity?.spanId ?? rootSpanId(traceId) };
      const links = batch === null ? [] : [batch];
      exporter.add({ traceId, spanId, ...parent, ...plain(span), attributes, links });
      return { traceId, spanId };
    });
    if (batch !== null)
      exporter.add({ ...batch, ...plain(span), name: `${span.name} batch`, attributes, links: contexts });
  };

  const inActivity = async <Result>(run: ActivityRun, work: () => Promise<Result>): Promise<Result> => {
    const activity: RunningActivity = { spanId: newSpanId(), traces: new Set(), later: [] };
    const startMs = epochMs();
    let failed: string | undefined;
    try {
      return await activities.run(activity, work);
    } catch (error) {
      failed = error instanceof Error ? error.name : 'error';
      throw error;
    } finally {
      for (const span of spansOfActivity(activity, run, startMs, failed)) exporter.add(span);
    }
  };

  tracing.note = note;
  tracing.inActivity = inActivity;
  return {
    close: async () => {
      tracing.note = null;
      tracing.inActivity = null;
      await exporter.close();
    },
  };
}

/** Its own span in each trace that it had to do with, with what it noted before it knew of one. */
function spansOfActivity(
  activity: RunningActivity,
  { type, ...attributes }: ActivityRun,
  startMs: number,
  failed: string | undefined,
): Span[] {
  const own: SpanNote = { name: `activity ${type}`, about: [], startMs, endMs: epochMs(), attributes };
  return [...activity.traces].flatMap((traceId) => {
    const ids = { traceId, spanId: activity.spanId, parentSpanId: rootSpanId(traceId) };
    const later = activity.later.map((note) => ({
      traceId,
      spanId: newSpanId(),
      parentSpanId: activity.spanId,
      ...plain(note),
      attributes: attributesOf(note, []),
      links: [],
    }));
    return [{ ...ids, ...plain({ ...own, failed }), attributes: attributesOf(own, []), links: [] }, ...later];
  });
}

/** A body that cannot be read has no events. */
function orNone(read: () => TracedEvent[]): TracedEvent[] {
  try {
    return read();
  } catch {
    return [];
  }
}

/** Milliseconds since 1970, with their parts. */
function epochMs(): number {
  return performance.timeOrigin + performance.now();
}

/** The trace of all events of a WABA with one key. It is derived from what every process knows, so that no message carries it. */
export function traceIdOf(wabaId: string, key: string): string {
  return createHash('sha256').update(`trace ${wabaId} ${key}`).digest('hex').slice(0, 32);
}

function rootSpanId(traceId: string): string {
  return createHash('sha256').update(`root ${traceId}`).digest('hex').slice(0, 16);
}

function newSpanId(): string {
  return randomBytes(8).toString('hex');
}

function newContext(): SpanContext {
  return { traceId: randomBytes(16).toString('hex'), spanId: newSpanId() };
}

/** Each process finds the same traces to be in it. */
function sampler(percent: number): (traceId: string) => boolean {
  const below = (percent / 100) * 2 ** 32;
  return (traceId) => Number.parseInt(traceId.slice(0, 8), 16) < below;
}

/** As OTLP numbers them: a request that comes in, one that goes out, and what is neither. */
const KINDS: Readonly<Record<string, number>> = { receive: 2, attempt: 3 };
const INTERNAL = 1;
const ERROR = 2;

function plain({ name, startMs, endMs, failed }: SpanNote) {
  return {
    name,
    kind: KINDS[name] ?? INTERNAL,
    startTimeUnixNano: nanosOf(startMs),
    endTimeUnixNano: nanosOf(Math.max(startMs, endMs)),
    status: failed === undefined ? { code: 0 } : { code: ERROR, message: failed },
  };
}

function nanosOf(ms: number): string {
  return `${Math.round(ms * 1_000)}000`;
}

/** No eventId: it may hold a customer's phone number. */
function attributesOf({ attributes = {} }: SpanNote, events: readonly TracedEvent[]): Attribute[] {
  const [event] = events;
  const ofEvent = event !== undefined &&
    events.length === 1 && {
      waba_id: event.wabaId,
      event_type: event.type,
      event: event.uuid === undefined ? undefined : publicEventId(event.uuid),
    };
  const named = { ...ofEvent, ...(events.length > 1 && { events: events.length }), ...attributes };
  return Object.entries(named).flatMap(([name, value]) =>
    value === undefined || value === null ? [] : [{ key: `heliograph.${name}`, value: otlpValue(value) }],
  );
}

function otlpValue(value: string | number | boolean): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}

/** Sends spans in groups. What a receiver does not take in time is dropped: traces must hold up nothing. */
class Exporter {
  readonly #options: Options;
  readonly #timer: NodeJS.Timeout;
  readonly #ending = new AbortController();
  #waiting: Span[] = [];
  #sending: Promise<void> | null = null;
  #dropped = 0;

  constructor(options: Options) {
    this.#options = options;
    this.#timer = setInterval(() => this.#send(), BATCH.everyMs).unref();
  }

  add(span: Span): void {
    if (this.#waiting.length < BATCH.waiting) this.#waiting.push(span);
    else this.#dropped += 1;
    if (this.#waiting.length >= BATCH.spans) this.#send();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    const timeOut = setTimeout(() => this.#ending.abort(), CLOSE_WITHIN_MS);
    await this.#sending;
    this.#send();
    await this.#sending;
    clearTimeout(timeOut);
  }

  #send(): void {
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = null;
    });
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const spans = this.#waiting.splice(0, BATCH.spans);
      const reason = await this.#post(spans);
      if (reason === null) {
        if (this.#dropped > 0) this.#options.logger.info({ dropped: this.#dropped }, 'traces are sent again');
        this.#dropped = 0;
        continue;
      }
      if (this.#dropped === 0)
        this.#options.logger.warn({ reason }, 'traces cannot be sent: they are dropped');
      this.#dropped += spans.length;
    }
  }

  /** Returns why they were not taken. */
  async #post(spans: readonly Span[]): Promise<string | null> {
    const { url, headers } = this.#options;
    try {
      const response = await fetch(`${url}/v1/traces`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(requestOf(this.#options.service, spans)),
        signal: AbortSignal.any([this.#ending.signal, AbortSignal.timeout(BATCH.withinMs)]),
      });
      await response.arrayBuffer();
      return response.ok ? null : `status ${response.status}`;
    } catch (error) {
      return error instanceof Error ? error.name : 'error';
    }
  }
}

/** ExportTraceServiceRequest, in its JSON form. */
function requestOf(service: string, spans: readonly Span[]) {
  const facts = {
    'service.name': service,
    'service.version': packageJson.version,
    'service.instance.id': `${hostname()}:${process.pid}`,
  };
  const attributes = Object.entries(facts).map(([key, value]) => ({ key, value: otlpValue(value) }));
  const scopeSpans = [{ scope: { name: 'heliograph', version: packageJson.version }, spans }];
  return { resourceSpans: [{ resource: { attributes }, scopeSpans }] };
}
