import { Type } from 'typebox';
import { messageKind } from './message-kind.ts';
import { exactlyOne } from './problem.ts';
import { MEDIA_SOURCE, strict, text } from './schema-parts.ts';

const Caption = Type.Optional(text(1_024));

const check = (content: Record<string, unknown>, path: string) => exactlyOne(content, ['id', 'link'], path);

const captioned = strict({ ...MEDIA_SOURCE, caption: Caption });

/** Messages that are a file. */
export const mediaMessages = [
  messageKind({ type: 'image', content: captioned, check }),
  messageKind({ type: 'video', content: captioned, check }),
  messageKind({
    type: 'audio',
    content: strict({ ...MEDIA_SOURCE, voice: Type.Optional(Type.Boolean()) }),
    check,
  }),
  messageKind({
    type: 'document',
    content: strict({ ...MEDIA_SOURCE, caption: Caption, filename: Type.Optional(text(240)) }),
    check,
  }),
  messageKind({ type: 'sticker', content: strict(MEDIA_SOURCE), check }),
];
