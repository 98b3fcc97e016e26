import { Type } from 'typebox';
import { messageKind } from './message-kind.ts';
import { strict, text } from './schema-parts.ts';

export const textMessage = messageKind({
  type: 'text',
  content: strict({ body: text(4_096), preview_url: Type.Optional(Type.Boolean()) }),
});
