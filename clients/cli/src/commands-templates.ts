import type { MessageTemplate, MessageTemplateList } from '../../typescript/src/generated/types.gen.js';
import { type Command, textOf } from './command.ts';
import { limitOf } from './commands-events.ts';
import { EXIT } from './failure.ts';
import { printable, table } from './output.ts';

function templateTable(templates: readonly MessageTemplate[]): string {
  const rows = templates.map(({ name, language, status, category, quality, rejectedReason }) =>
    [name, language, status, category, quality, rejectedReason].map((one) => printable(one ?? '')),
  );
  return table(['NAME', 'LANGUAGE', 'STATUS', 'CATEGORY', 'QUALITY', 'REASON'], rows);
}

const text = (value: string, help: string) => ({ type: 'string', value, help }) as const;

const templates: Command = {
  name: 'templates',
  summary: 'list message templates, with state, category and quality',
  options: {
    name: text('<name>', 'those of this name'),
    status: text('<status>', 'those in this state, such as APPROVED'),
    category: text('<category>', 'those of this category, such as MARKETING'),
    language: text('<code>', 'those in this language'),
    refresh: { type: 'boolean', help: 'copy them from upstream first' },
    limit: text('<n>', 'how many to show, 25 unless set'),
  },
  examples: ['heliograph templates --status PAUSED', 'heliograph templates --name order_ready --refresh'],
  async run({ api, output, isJson }, _operands, values) {
    const query = {
      name: textOf(values, 'name'),
      status: textOf(values, 'status'),
      category: textOf(values, 'category'),
      language: textOf(values, 'language'),
      refresh: values.refresh === true ? 'true' : undefined,
      limit: String(limitOf(values)),
    };
    const path = '/api/external/message-templates';
    const { data, hasMore } = await api().call<MessageTemplateList>('GET', path, { query });
    if (isJson) output.json(data);
    else if (data.length === 0) output.note('There are no such message templates.');
    else output.line(templateTable(data));
    if (hasMore) output.note('There are more: --limit shows up to 100.');
    return EXIT.ok;
  },
};

export const TEMPLATE_COMMANDS: readonly Command[] = [templates];
