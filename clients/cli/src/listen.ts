import { createHash, randomBytes } from 'node:crypto';
import { createInterface } from 'node:readline';
import type { ApiClient } from './api-client.ts';
import { makeCatchUp } from './catch-up.ts';
import { clockNote } from './clock.ts';
import type { Context } from './command.ts';
import { bodyOf, type StreamedEvent } from './event-block.ts';
import { readStream } from './event-stream.ts';
import { EXIT, type ExitCode, Failure, wrongUsage } from './failure.ts';
import { makeForwarder } from './forwarder.ts';
import { readKeys } from './listen-keys.ts';
import { forwardedLine } from './listen-lines.ts';
import { printable } from './output.ts';
import type { Session } from './profile.ts';
import { addressOf } from './service-url.ts';
import { secretBytes } from './signature.ts';

export type ListenOptions = {
  forwardTo: string;
  types: string | undefined;
  secret: string | undefined;
  /** Go on behind the last session without asking; false: never. */
  resume: boolean | undefined;
  /** End when nothing has come for this time, in ms; for scripts. */
  idleExitMs: number | null;
};

const END_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const TIMEOUT_MS = 15_000;
const MAX_REFUSED_MS = 10_000;
const SAVE_EVERY_MS = 250;
/** The stream is about two seconds behind. */
const BEHIND_MS = 3_000;

/** Live events of the WABA to a server on this machine, until the user ends it. */
export async function listen(context: Context, options: ListenOptions): Promise<ExitCode> {
  const url = localUrl(options.forwardTo);
  const api = context.api();
  const name = sessionName(api, options.types);
  const before = context.profile.session(name);
  const own = before?.secret ?? `whsec_${randomBytes(32).toString('base64')}`;
  const secret = options.secret ?? own;
  if (secretBytes(secret) === null)
    throw wrongUsage('The secret must begin with whsec_ and be 24 to 64 bytes in base64.');
  const cursor = await cursorOf(context, api, { before, ...options });
  const session = keepSession(context, name, { cursor: cursor ?? '', at: before?.at ?? '', secret: own });
  const isSecretGiven = options.secret !== undefined;
  return await forwardStream(context, { ...options, api, url, secret, isSecretGiven, cursor, session });
}

function localUrl(text: string): string {
  const isPort = /^\d+$/.test(text) && Number(text) <= 65_535;
  const address = isPort ? `http://localhost:${text}/` : text;
  return addressOf(address, '--forward-to', 'http://localhost:3000/webhooks, or as a port').href;
}

/** Sessions of one account with one filter go on behind one another. */
function sessionName({ account }: ApiClient, types: string | undefined): string {
  return createHash('sha256')
    .update(JSON.stringify([account.url, account.apiKey, types ?? '']))
    .digest('hex')
    .slice(0, 24);
}

type Missed = Pick<ListenOptions, 'resume' | 'types'> & { before: Session | null };

/** Where to begin: behind the last session if the user wants what came since, otherwise now. */
async function cursorOf(
  context: Context,
  api: ApiClient,
  { before, resume, types }: Missed,
): Promise<string | null> {
  if (before === null || before.cursor === '' || resume === false) return null;
  if (resume === true) return before.cursor;
  const missed = await countMissed(api, before, types);
  if (missed === null) return before.cursor;
  if (!context.isInteractive) {
    context.output.note(`${missed} came since the last session. --resume forwards them too.`);
    return null;
  }
  const prompt = createInterface({ input: context.stdin, output: process.stderr });
  const question = `${missed} came since the last session (${before.at}). Forward them too? [Y/n] `;
  const reply = await new Promise<string>((resolve) => prompt.question(printable(question), resolve));
  prompt.close();
  return /^n/i.test(reply.trim()) ? null : before.cursor;
}

const COUNTED = 100;

/** "3 events"; null: nothing came. */
async function countMissed(
  api: ApiClient,
  { at }: Session,
  types: string | undefined,
): Promise<string | null> {
  if (at === '') return null;
  const wanted = types?.split(',');
  // The list takes one type. A millisecond later, so that the last event itself does not count.
  const since = new Date(Date.parse(at) + 1).toISOString();
  const counts = await Promise.all(
    (wanted ?? [undefined]).map(async (type) => {
      const query = { since, limit: String(COUNTED), type: type?.trim() };
      const page = await api.call<{ data: unknown[]; hasMore: boolean }>('GET', '/api/external/events', {
        query,
      });
      return { count: page.data.length, hasMore: page.hasMore };
    }),
  );
  const sum = counts.reduce((total, { count }) => total + count, 0);
  if (sum === 0) return null;
  const isMore = counts.some(({ hasMore }) => hasMore);
  return `${isMore ? 'More than ' : ''}${sum} ${sum === 1 ? 'event' : 'events'}`;
}

/** Stores how far the session has come, a few times a second at most, and at its end. */
function keepSession({ profile }: Context, name: string, session: Session) {
  let timer: NodeJS.Timeout | null = null;
  const save = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (session.cursor !== '') profile.saveSession(name, session);
  };
  return {
    reached(cursor: string, at: string): void {
      session.cursor = cursor;
      if (at > session.at) session.at = at;
      timer ??= setTimeout(save, SAVE_EVERY_MS);
    },
    save,
  };
}

type Course = ListenOptions & {
  api: ApiClient;
  isSecretGiven: boolean;
  url: string;
  cursor: string | null;
  session: ReturnType<typeof keepSession>;
};

async function forwardStream(context: Context, course: Course & { secret: string }): Promise<ExitCode> {
  const { output } = context;
  const { api, url, secret, session, types, cursor } = course;
  let aheadMs = 0;
  const serverNowMs = (): number => Date.now() - aheadMs;
  const catchUp = makeCatchUp(output, serverNowMs);
  const stop = new AbortController();
  const idle = idleTimer(course.idleExitMs, () => stop.abort());
  const forwarder = makeForwarder({
    url,
    secret,
    timeoutMs: TIMEOUT_MS,
    maxRefusedMs: MAX_REFUSED_MS,
    onForwarded: (forwarded) => {
      idle.refresh();
      if (context.isJson) output.jsonLine(JSON.stringify(jsonOf(forwarded)));
      else output.line(forwardedLine(forwarded, output));
      if (forwarded.attempt === 1) catchUp.forwarded(forwarded.event.createdAt);
    },
    onSettled: (reached, event) => session.reached(reached, event.createdAt),
  });
  // An event that waits for its turn must not hold up the end.
  stop.signal.addEventListener('abort', () => forwarder.stop());
  const end = endBySignal(stop);
  const keys = readKeys(context, forwarder, end.interrupt);
  introduce(output, course, keys.areRead);
  try {
    await readStream({
      api,
      types,
      cursor,
      signal: stop.signal,
      onEvent: async (event, at) => forwarder.add(await released(api, event), at),
      onCursor: (at) => {
        if (forwarder.waitingCount() > 0) return;
        catchUp.end();
        session.reached(at, new Date(serverNowMs() - BEHIND_MS).toISOString());
      },
      onOpen: (isAgain, ahead) => {
        aheadMs = ahead;
        const clock = isAgain ? null : clockNote(ahead);
        if (clock !== null) output.note(clock);
        output.note(isAgain ? 'Connected again; nothing was missed.' : 'Waiting for events.');
      },
      onCut: (problem, waitMs) =>
        output.note(`Disconnected: ${problem}. Again in ${(waitMs / 1_000).toFixed(1)} s.`),
    });
  } finally {
    keys.close();
    idle.clear();
    forwarder.stop();
    session.save();
    end.release();
  }
  return end.exitCode();
}

function introduce(
  { note }: Context['output'],
  { api, url, secret, types, isSecretGiven }: Course & { secret: string },
  areKeysRead: boolean,
): void {
  note(`Forwarding ${types ?? 'all'} events of ${api.account.url} to ${url}`);
  note(isSecretGiven ? 'Signed with the secret that you gave.' : `Secret of this session: ${secret}`);
  if (areKeysRead) note('Keys: r retries the last that failed, R all that failed, d shows a diff, q quits.');
}

/** Ends the session when the user does, or the system, or when the terminal is closed. */
function endBySignal(stop: AbortController) {
  let exitCode: ExitCode = EXIT.ok;
  const interrupt = (): void => {
    exitCode = EXIT.interrupted;
    stop.abort();
  };
  for (const signal of END_SIGNALS) process.once(signal, interrupt);
  const release = (): void => {
    for (const signal of END_SIGNALS) process.off(signal, interrupt);
  };
  return { interrupt, release, exitCode: () => exitCode };
}

function idleTimer(idleMs: number | null, end: () => void) {
  if (idleMs === null) return { refresh: () => {}, clear: () => {} };
  const timer = setTimeout(end, idleMs);
  return { refresh: () => void timer.refresh(), clear: () => clearTimeout(timer) };
}

function jsonOf({
  event,
  deliveryId,
  attempt,
  status,
  error,
  durationMs,
}: Parameters<typeof forwardedLine>[0]) {
  const { id, eventType, eventId, sequence } = event;
  const ms = Math.round(durationMs * 10) / 10;
  return { id, eventType, eventId, sequence, deliveryId, attempt, status, error, durationMs: ms };
}

const RELEASE_LOOKS = 20;
const RELEASE_EVERY_MS = 500;

/** The event with its body: an order that waits long for its catalog is in the stream without one. */
async function released(api: ApiClient, event: StreamedEvent): Promise<StreamedEvent> {
  for (let looks = 0; event.body === null && looks < RELEASE_LOOKS; looks += 1) {
    const response = await api.open(`/api/external/events/${event.id}`, {}, AbortSignal.timeout(10_000));
    const text = await response.text();
    const body = response.ok ? bodyOf(text) : null;
    if (body !== null) return { ...event, body };
    await new Promise((resolve) => setTimeout(resolve, RELEASE_EVERY_MS));
  }
  if (event.body !== null) return event;
  throw new Failure(EXIT.refused, `The event ${event.id} has no body yet.`);
}
