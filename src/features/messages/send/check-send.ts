import type { TSchema } from 'typebox';
import { isMembers, type Members } from '../../../platform/json/json-members.ts';
import { PHONE_DIGITS, readPhoneNumber } from '../../../platform/phone-number.ts';
import { joined, memberProblem, type Problem } from '../../../platform/schema/problems.ts';
import { validatorOf } from '../../../platform/schema/validator.ts';
import { nearestName } from '../../../platform/schema/wrong-value.ts';
import {
  Envelope,
  GroupEnvelope,
  isReserved,
  isTypeName,
  type SendRequest,
  shapeOf,
} from './send-request.ts';
import { typeOf } from './upstream-payload.ts';

export function shapeProblem(shape: TSchema, value: unknown, path: string): Problem | null {
  // Compiled when first needed: a tenant uses few of the shapes.
  const validator = validatorOf(shape);
  return validator.Check(value) ? null : memberProblem(validator.Errors(value), path, shape);
}

export function sendProblem(body: unknown): Problem | null {
  if (!isMembers(body)) return { param: '', message: 'The body must be a JSON object.' };
  const type = typeOf(body);
  if (!isTypeName(type)) return { param: 'type', message: 'The parameter must be the type of a message.' };
  const { [type]: content, ...envelope } = body;
  const { shape } = shapeOf(type, content);
  return (
    shapeProblem(body.recipient_type === 'group' ? GroupEnvelope : Envelope, envelope, '') ??
    (content === undefined ? { param: type, message: 'The parameter is missing.' } : null) ??
    shapeProblem(shape, content, type) ??
    reservedProblem(body) ??
    recipientProblem(body as SendRequest) ??
    extraProblem(body as SendRequest)
  );
}

/** A member by which upstream would take the send for another call, or another token. */
function reservedProblem(body: Members): Problem | null {
  const name = Object.keys(body).find(isReserved);
  return name === undefined ? null : { param: name, message: 'This member is not passed on.' };
}

/** The recipient and the kind of request are given outside of `extra`, where they are checked. */
const NOT_EXTRA = new Set(Object.keys(Envelope.properties));

/** Why `extra` cannot be added: it names a member that is given outside, or that belongs there. */
function extraProblem(request: SendRequest): Problem | null {
  const wrong = Object.keys(request.extra ?? {}).find(
    (name) => NOT_EXTRA.has(name) || isReserved(name) || Object.hasOwn(request, name),
  );
  if (wrong === undefined) return null;
  return { param: joined('extra', wrong), message: 'This member cannot be given in extra.' };
}

function recipientProblem({ to, recipient, recipient_type: kind }: SendRequest): Problem | null {
  if (kind === 'group') {
    if (recipient !== undefined) {
      return { param: 'recipient', message: 'A group is named by to alone.' };
    }
    const message = 'With recipient_type group, to is the id of the group, not a phone number.';
    return readPhoneNumber(to ?? '') === null ? null : { param: 'to', message };
  }
  if (to === undefined) {
    return recipient === undefined ? { param: 'to', message: 'Give to or recipient.' } : null;
  }
  const digits = readPhoneNumber(to)?.length ?? 0;
  const { minimum, maximum } = PHONE_DIGITS;
  if (digits >= minimum && digits <= maximum) return null;
  const form = `with its country code and ${minimum} to ${maximum} digits, such as +12025550143`;
  return { param: 'to', message: `The parameter must be a phone number ${form}.` };
}

const MAX_WARNINGS = 20;
const MAX_NAME_CHARS = 100;

/** What of a checked request the service does not know and passes on as it is: upstream decides about it. */
export function sendWarnings(request: SendRequest): Problem[] {
  const type = String(typeOf(request));
  const { [type]: content, ...envelope } = request;
  const { shape, isKnown } = shapeOf(type, content);
  const inside = isKnown
    ? unknownMembers(shape, content, type)
    : [type === 'interactive' ? 'interactive/type' : 'type'];
  const params = [...unknownMembers(Envelope as Shape, envelope, ''), ...inside];
  const message = 'The service does not know it; it is passed on to upstream as it is.';
  return params.slice(0, MAX_WARNINGS).map((param) => ({ param, message: `${message}${hintFor(param)}` }));
}

function hintFor(param: string): string {
  const meant = nearestName(param, Object.keys(Envelope.properties));
  return meant === null ? '' : ` Did you mean ${meant}?`;
}

type Shape = { properties?: Readonly<Record<string, Shape>>; items?: Shape };

/** The paths of members that a shape does not have; an object without any is upstream’s alone. */
function unknownMembers(shape: Shape, value: unknown, path: string): string[] {
  const { properties = {}, items } = shape;
  if (items !== undefined && Array.isArray(value)) {
    return value.flatMap((item, index) => unknownMembers(items, item, joined(path, index)));
  }
  if (!isMembers(value) || Object.keys(properties).length === 0) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    const at = joined(path, name.slice(0, MAX_NAME_CHARS));
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined;
    return known === undefined ? [at] : unknownMembers(known, member, at);
  });
}
