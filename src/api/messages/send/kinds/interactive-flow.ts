import { Type } from 'typebox';
import { Body, interactiveKind } from './interactive-parts.ts';
import { exactlyOne } from './problem.ts';
import { strict, text, UpstreamId } from './schema-parts.ts';

type Content = { action: { parameters: Record<string, unknown> } };

export const flowMessage = interactiveKind({
  interactiveType: 'flow',
  header: { types: ['text', 'image', 'video', 'document'] },
  members: {
    body: Body,
    action: strict({
      name: Type.Literal('flow'),
      parameters: strict({
        flow_message_version: Type.Literal('3'),
        flow_id: Type.Optional(UpstreamId),
        flow_name: Type.Optional(UpstreamId),
        flow_cta: text(30),
        flow_token: Type.Optional(text(1_000)),
        flow_action: Type.Optional(Type.Enum(['navigate', 'data_exchange'])),
        flow_action_payload: Type.Optional(
          strict({
            screen: Type.Optional(text(1_000)),
            data: Type.Optional(Type.Object({}, { additionalProperties: true })),
          }),
        ),
        mode: Type.Optional(Type.Enum(['draft', 'published'])),
      }),
    }),
  },
  check: ({ action }: Content, path) =>
    exactlyOne(action.parameters, ['flow_id', 'flow_name'], `${path}/action/parameters`),
});
