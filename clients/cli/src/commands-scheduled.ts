import type { ScheduledMessage, ScheduledMessageList } from '../../typescript/src/generated/types.gen.js';
import { type Command, textOf } from './command.ts';
import { limitOf } from './commands-events.ts';
import { EXIT, wrongUsage } from './failure.ts';
import { printable, table } from './output.ts';

const PATH = '/api/external/messages';

function scheduledTable(messages: readonly ScheduledMessage[]): string {
  const rows = messages.map(({ serviceMessageId, sendAt, phoneNumberId, type, state, message }) => {
    const { to, recipient } = message as { to?: unknown; recipient?: unknown };
    return [serviceMessageId, sendAt, state, phoneNumberId, printable(String(to ?? recipient ?? '')), type];
  });
  return table(['MESSAGE', 'LEAVES', 'STATE', 'NUMBER', 'TO', 'TYPE'], rows);
}

const scheduled: Command = {
  name: 'scheduled',
  summary: 'list messages that are sent later, the next one first',
  options: {
    number: { type: 'string', value: '<phoneNumberId>', help: 'those of this number' },
    limit: { type: 'string', value: '<n>', help: 'how many to show, 25 unless set' },
  },
  examples: ['heliograph scheduled --number 800000000000111'],
  async run({ api, output, isJson }, _operands, values) {
    const query = {
      state: 'scheduled',
      phoneNumberId: textOf(values, 'number'),
      limit: String(limitOf(values)),
    };
    const { data, hasMore } = await api().call<ScheduledMessageList>('GET', PATH, { query });
    if (isJson) output.json(data);
    else if (data.length === 0) output.note('There are no scheduled messages.');
    else output.line(scheduledTable(data));
    if (hasMore) output.note('There are more: --limit shows up to 100.');
    return EXIT.ok;
  },
};

const move: Command = {
  name: 'move-scheduled',
  operands: '<message>',
  count: [1, 1],
  summary: 'give a scheduled message another time',
  options: {
    at: {
      type: 'string',
      value: '<time>',
      help: 'such as 2026-12-01T10:00:00+01:00: 30 seconds to 35 days ahead',
    },
  },
  examples: ['heliograph move-scheduled 4711 --at 2026-12-01T10:00:00+01:00'],
  async run({ api, output, isJson }, [id = ''], values) {
    const sendAt = textOf(values, 'at');
    if (sendAt === undefined) throw wrongUsage('--at is missing: say when the message is sent.');
    const moved = await api().call<ScheduledMessage>('PATCH', `${PATH}/${encodeURIComponent(id)}`, {
      body: { sendAt },
    });
    if (isJson) output.json(moved);
    else output.line(scheduledTable([moved]));
    return EXIT.ok;
  },
};

const cancel: Command = {
  name: 'cancel-scheduled',
  operands: '<message>',
  count: [1, 1],
  summary: 'cancel a scheduled message: it is not sent',
  options: {},
  examples: ['heliograph cancel-scheduled 4711'],
  async run({ api, output, isJson }, [id = '']) {
    const path = `${PATH}/${encodeURIComponent(id)}/cancel`;
    const cancelled = await api().call<ScheduledMessage>('POST', path);
    if (isJson) output.json(cancelled);
    else output.line(scheduledTable([cancelled]));
    return EXIT.ok;
  },
};

export const SCHEDULED_COMMANDS: readonly Command[] = [scheduled, move, cancel];
