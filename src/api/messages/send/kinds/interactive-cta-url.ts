import { Type } from 'typebox';
import { Body, interactiveKind } from './interactive-parts.ts';
import { strict, text, WebAddress } from './schema-parts.ts';

export const ctaUrlMessage = interactiveKind({
  interactiveType: 'cta_url',
  header: { types: ['text', 'image', 'video', 'document'] },
  members: {
    body: Body,
    action: strict({
      name: Type.Literal('cta_url'),
      parameters: strict({ display_text: text(20), url: WebAddress }),
    }),
  },
});
