import { type Members, membersOf, textOf } from '../../../platform/json/json-members.ts';
import { USER_ID } from '../../customers/customer-reference.ts';
import type { MessageToSend } from '../send/upstream-payload.ts';
import type { Broadcast } from './broadcast-store.ts';

/** The variables of the body of a template: by their place, or by their names. */
export type BodyParameters = readonly string[] | Readonly<Record<string, string>>;

/** The message to one recipient, as a request to send it would have it. */
export function messageTo(
  { phoneNumberId, template }: Pick<Broadcast, 'phoneNumberId' | 'template'>,
  { recipient, parameters }: { recipient: string; parameters: BodyParameters | null },
): MessageToSend {
  return {
    phoneNumberId,
    ...(USER_ID.test(recipient) ? { recipient } : { to: recipient }),
    type: 'template',
    template: withBody(membersOf(JSON.parse(template)), parameters),
  };
}

/** A recipient's own parameters take the place of the body that the template of the broadcast has. */
function withBody(template: Members, parameters: BodyParameters | null): Members {
  if (parameters === null) return template;
  const components = Array.isArray(template.components) ? template.components : [];
  const others = components.filter((one) => textOf(membersOf(one).type).toLowerCase() !== 'body');
  return { ...template, components: [...others, { type: 'body', parameters: textsOf(parameters) }] };
}

function textsOf(parameters: BodyParameters): Members[] {
  return Array.isArray(parameters)
    ? parameters.map((text: string) => ({ type: 'text', text }))
    : Object.entries(parameters).map(([name, text]) => ({ type: 'text', parameter_name: name, text }));
}
