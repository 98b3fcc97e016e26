import { membersOf } from '../../platform/json/json-members.ts';
import { columnsOf, textArray } from '../../platform/postgres/arrays.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { execute, query } from '../../platform/postgres/sql.ts';
import { insertAppMessages } from './app-messages.ts';

/** From the least that a report says of a call to the most. */
export const CALL_STATES = ['ringing', 'accepted', 'failed', 'rejected', 'completed'] as const;

type CallState = (typeof CALL_STATES)[number];

/** What reports of a call say; null: none has said it. */
export type CallFacts = {
  direction: 'inbound' | 'outbound';
  state: CallState;
  /** When it began, at the earliest that a report names. */
  at: Date | null;
  startedAt: Date | null;
  endedAt: Date | null;
  durationSeconds: number | null;
  errorCode: number | null;
};

type CallReport = CallFacts & {
  wabaId: string;
  phoneNumberId: string;
  conversationId: string;
  callId: string;
};

/** A voicemail may have the id of its call, and is a message beside it. */
const PREFIX = 'call:';

const CALL_TYPE = 'call';

/** The id of a call as upstream has it; null for what is no call. */
export function callIdOf(upstreamId: string | null): string | null {
  return upstreamId?.startsWith(PREFIX) === true ? upstreamId.slice(PREFIX.length) : null;
}

/**
 * Makes one entry of all reports of a call, in whatever order they come and however often. The caller holds the lock of customers. One
 * that was erased stays so.
 */
export async function saveCalls(trx: Transaction, reports: readonly CallReport[]): Promise<void> {
  if (reports.length === 0) return;
  const calls = new Map<string, CallReport>();
  for (const report of [...(await knownCalls(trx, reports)), ...reports]) {
    const key = `${report.phoneNumberId} ${report.callId}`;
    const other = calls.get(key);
    calls.set(key, other === undefined ? report : { ...other, ...together(other, report) });
  }
  const entries = [...calls.values()].map(({ callId, conversationId, ...call }) => ({
    ...call,
    conversationId,
    upstreamId: `${PREFIX}${callId}`,
    type: CALL_TYPE,
    content: contentOf(callId, call),
    contextId: null,
    targetId: null,
    sentAt: call.at ?? call.startedAt ?? call.endedAt,
    origin: null,
  }));
  await insertAppMessages(trx, entries);
  await execute(
    trx,
    `update messages m set content = g.content, direction = g.direction, sent_at = g.sent_at
       from unnest(:phoneNumberId::text[], :upstreamId::text[], :contents::text[], :direction::text[], :sentAt::timestamptz[])
         as g (phone_number_id, upstream_id, content, direction, sent_at)
      where m.phone_number_id = g.phone_number_id and m.upstream_id = g.upstream_id and m.content <> g.content`,
    {
      ...columnsOf(entries, 'phoneNumberId', 'upstreamId', 'direction', 'sentAt'),
      contents: textArray(entries.map(({ content }) => content)),
    },
  );
}

async function knownCalls(trx: Transaction, reports: readonly CallReport[]): Promise<CallReport[]> {
  const rows = await query<Omit<CallReport, keyof CallFacts> & { content: string }>(
    trx,
    `select m.waba_id as "wabaId", m.phone_number_id as "phoneNumberId", m.conversation_id as "conversationId",
            substr(m.upstream_id, :from) as "callId", m.content
       from messages m
       join (select distinct * from unnest(:phoneNumberId::text[], :upstreamId::text[])) as g (phone_number_id, upstream_id)
         on m.phone_number_id = g.phone_number_id and m.upstream_id = g.upstream_id`,
    {
      ...columnsOf(reports, 'phoneNumberId'),
      upstreamId: reports.map(({ callId }) => `${PREFIX}${callId}`),
      from: PREFIX.length + 1,
    },
  );
  return rows.map(({ content, ...row }) => ({ ...row, ...readCall(content) }));
}

/** The same whichever of both came first. */
function together(one: CallFacts, other: CallFacts): CallFacts {
  return {
    direction: one.direction < other.direction ? one.direction : other.direction,
    state: CALL_STATES.indexOf(one.state) > CALL_STATES.indexOf(other.state) ? one.state : other.state,
    at: least(one.at, other.at),
    startedAt: least(one.startedAt, other.startedAt),
    endedAt: least(one.endedAt, other.endedAt),
    durationSeconds: least(one.durationSeconds, other.durationSeconds),
    errorCode: least(one.errorCode, other.errorCode),
  };
}

function least<T extends Date | number>(one: T | null, other: T | null): T | null {
  if (one === null || other === null) return one ?? other;
  return one <= other ? one : other;
}

const secondsOf = (at: Date | null) => (at === null ? null : String(Math.floor(at.getTime() / 1_000)));
const timeOf = (seconds: unknown) => (typeof seconds === 'string' ? new Date(Number(seconds) * 1_000) : null);
const numberOf = (value: unknown) => (typeof value === 'number' ? value : null);

/** In upstream's names, as the content of every message is. */
function contentOf(id: string, call: CallFacts): string {
  const { direction, state, at, startedAt, endedAt, durationSeconds, errorCode } = call;
  const members = {
    direction: direction === 'inbound' ? 'USER_INITIATED' : 'BUSINESS_INITIATED',
    status: state.toUpperCase(),
    start_time: secondsOf(startedAt) ?? undefined,
    end_time: secondsOf(endedAt) ?? undefined,
    duration: durationSeconds ?? undefined,
    error_code: errorCode ?? undefined,
  };
  return JSON.stringify({ id, type: CALL_TYPE, timestamp: secondsOf(at) ?? undefined, call: members });
}

/** What an entry says of its call. */
export function readCall(content: string): CallFacts {
  const { timestamp, call } = membersOf(JSON.parse(content));
  const { direction, status, start_time, end_time, duration, error_code } = membersOf(call);
  return {
    direction: direction === 'USER_INITIATED' ? 'inbound' : 'outbound',
    state: CALL_STATES.find((state) => state.toUpperCase() === status) ?? 'ringing',
    at: timeOf(timestamp),
    startedAt: timeOf(start_time),
    endedAt: timeOf(end_time),
    durationSeconds: numberOf(duration),
    errorCode: numberOf(error_code),
  };
}
