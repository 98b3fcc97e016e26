import { Type } from 'typebox';
import { Body, interactiveKind } from './interactive-parts.ts';
import { strict } from './schema-parts.ts';

export const locationRequestMessage = interactiveKind({
  interactiveType: 'location_request_message',
  members: { body: Body, action: strict({ name: Type.Literal('send_location') }) },
});
