import { Type } from 'typebox';
import { Body, interactiveKind } from './interactive-parts.ts';
import { firstProblem, noneTwice } from './problem.ts';
import { strict, text } from './schema-parts.ts';

const Button = strict({
  type: Type.Literal('reply'),
  reply: strict({ id: text(256), title: text(20) }),
});

type Content = { action: { buttons: { reply: { id: string; title: string } }[] } };

export const buttonMessage = interactiveKind({
  interactiveType: 'button',
  header: { types: ['text', 'image', 'video', 'document'] },
  members: {
    body: Body,
    action: strict({ buttons: Type.Array(Button, { minItems: 1, maxItems: 3 }) }),
  },
  check: ({ action: { buttons } }: Content, path) => {
    const replies = (member: 'id' | 'title') =>
      buttons.map(
        ({ reply }, index) => [`${path}/action/buttons/${index}/reply/${member}`, reply[member]] as const,
      );
    return firstProblem(
      () => noneTwice(replies('id')),
      () => noneTwice(replies('title')),
    );
  },
});
