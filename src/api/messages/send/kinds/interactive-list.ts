import { Type } from 'typebox';
import { interactiveKind } from './interactive-parts.ts';
import { noneTwice, type Problem } from './problem.ts';
import { strict, text } from './schema-parts.ts';

const MAX_ROWS = 10;

const Row = strict({ id: text(200), title: text(24), description: Type.Optional(text(72)) });

const Section = strict({
  title: Type.Optional(text(24)),
  rows: Type.Array(Row, { minItems: 1, maxItems: MAX_ROWS }),
});

type Content = { action: { sections: { title?: string; rows: { id: string }[] }[] } };

export const listMessage = interactiveKind({
  interactiveType: 'list',
  header: { types: ['text'] },
  members: {
    body: strict({ text: text(4_096) }),
    action: strict({
      button: text(20),
      sections: Type.Array(Section, { minItems: 1, maxItems: 10 }),
    }),
  },
  check: ({ action: { sections } }: Content, path) => {
    const own = `${path}/action/sections`;
    const ids = sections.flatMap(({ rows }, section) =>
      rows.map(({ id }, row) => [`${own}/${section}/rows/${row}/id`, id] as const),
    );
    if (ids.length > MAX_ROWS)
      return { param: own, message: `There may be ${MAX_ROWS} rows in all sections together.` };
    return untitledSection(sections, own) ?? noneTwice(ids);
  },
});

/** With several sections each needs a title. */
export function untitledSection(sections: readonly { title?: string }[], path: string): Problem | null {
  const index = sections.length < 2 ? -1 : sections.findIndex(({ title }) => title === undefined);
  if (index < 0) return null;
  return { param: `${path}/${index}/title`, message: 'With several sections each needs a title.' };
}
