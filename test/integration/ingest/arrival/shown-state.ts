import { findThread } from '../../../../src/features/messages/conversations/thread.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { queryColumn } from '../../../../src/platform/postgres/sql.ts';
import { type Account, START_SECONDS } from './stored-state.ts';

type Row = Record<string, string | number | boolean | undefined>;

/** What users see of a table's row; tables that are not here are compared, and not shown. */
const SHOWN: Readonly<Record<string, (row: Row) => string | null>> = {
  contacts: ({ wa_id = '', user_id = '' }) => `customer ${wa_id} ${user_id}`,
  events: ({ event_type, event_id }) =>
    String(event_type).startsWith('upstream.') ? `event ${event_type}` : `event ${event_type} ${event_id}`,
  group_members: ({ contact_id, state }) => `member ${contact_id} ${state}`,
  messages: ({ direction, upstream_id, type, origin, content }) =>
    `message ${direction} ${upstream_id} ${type}${origin === undefined ? '' : ` ${origin}`}${type === 'call' ? callOf(String(content)) : ''}`,
  message_states: ({ upstream_id, status }) => `state ${upstream_id} ${status}`,
  message_templates: ({ name, language, status = '', category = '' }) =>
    `template ${name} ${language} ${status} ${category}`,
  opt_outs: ({ is_stop, scope, source, since }) =>
    is_stop === true
      ? `opt-out ${scope} ${source} since ${Date.parse(String(since)) / 1_000 - START_SECONDS} s`
      : null,
  upstream_troubles: ({ kind, subject, reason }) =>
    `problem ${kind} ${subject}${kind === 'number_shared' ? '' : ` ${reason}`}`,
};

function callOf(content: string): string {
  const { status, duration } = JSON.parse(content).call;
  return ` ${String(status).toLowerCase()}${duration === undefined ? '' : ` ${duration}`}`;
}

/** What users see of the lines of `storedStates`, and who has the conversations. */
export async function shownState(
  database: Database,
  { wabaId }: Account,
  lines: readonly string[],
): Promise<string[]> {
  const shown = lines.flatMap((line) => {
    const [table = ''] = line.split(' ', 1);
    return SHOWN[table]?.(JSON.parse(line.slice(table.length + 1))) ?? [];
  });
  const ids = await queryColumn<string>(
    database,
    'select id from conversations where waba_id = :wabaId and merged_into is null',
    { wabaId },
  );
  for (const id of ids) {
    const thread = await findThread(database, wabaId, id);
    if (thread !== null) shown.push(`thread ${thread.owner}${thread.role === null ? '' : ` ${thread.role}`}`);
  }
  return shown.toSorted();
}
