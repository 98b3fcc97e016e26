import { Compile, type Validator } from 'typebox/compile';
import { extraProblem, isMembers } from './extra-members.ts';
import { exactlyOne, firstProblem, type Problem } from './kinds/problem.ts';
import { memberProblem } from './member-problem.ts';
import {
  INTERACTIVE_TYPES,
  MESSAGE_TYPES,
  NEW_INTERACTIVE_TYPE,
  NEW_TYPE,
  SEND_FORMS,
  type SendForm,
  type SendRequest,
} from './send-body.ts';
import { storableProblem } from './storable-value.ts';
import { messageOf } from './upstream-payload.ts';

/** Compiled when first needed: a tenant uses few of the forms. */
const validators = new Map<SendForm, Validator>();

/** The first thing that is wrong with the body of a send; null when it can be sent. */
export function sendProblem(body: unknown): Problem | null {
  if (!isMembers(body)) return { param: '', message: 'The body must be a JSON object.' };
  const unstorable = storableProblem(body);
  if (unstorable !== null) return unstorable;
  const form = formOf(body);
  if ('message' in form) return form;
  const validator = validators.get(form) ?? Compile(form.schema);
  validators.set(form, validator);
  if (!validator.Check(body)) return memberProblem(validator.Errors(body));
  const request = body as SendRequest;
  return firstProblem(
    () => exactlyOne(request, ['to', 'recipient'], ''),
    () => phoneProblem(request.to),
    () => contentProblem(form, request),
    () => (request.extra === undefined ? null : extraProblem(messageOf(request), request.extra)),
  );
}

function formOf(body: Readonly<Record<string, unknown>>): SendForm | Problem {
  const { type, extra } = body;
  if (type === undefined && isMembers(extra) && isNew(extra.type, MESSAGE_TYPES)) return NEW_TYPE;
  if (type !== 'interactive') {
    const form = typeof type === 'string' && !type.includes('/') ? SEND_FORMS.get(type) : undefined;
    return form ?? { param: 'type', message: `The parameter must be one of ${MESSAGE_TYPES.join(', ')}.` };
  }
  const content = body.interactive;
  if (content === undefined) {
    const added = isMembers(extra) && isMembers(extra.interactive) ? extra.interactive.type : undefined;
    if (isNew(added, INTERACTIVE_TYPES)) return NEW_INTERACTIVE_TYPE;
    return { param: 'interactive', message: 'The parameter is missing.' };
  }
  if (!isMembers(content)) return { param: 'interactive', message: 'The parameter must be object.' };
  return (
    SEND_FORMS.get(`interactive/${content.type}`) ?? {
      param: 'interactive/type',
      message: `The parameter must be one of ${INTERACTIVE_TYPES.join(', ')}.`,
    }
  );
}

/** What is known has to be given outside of `extra`, where it is checked. */
function isNew(type: unknown, known: readonly string[]): boolean {
  return typeof type === 'string' && type !== '' && !known.includes(type);
}

const DIGITS = { minimum: 4, maximum: 17 };

function phoneProblem(to: string | undefined): Problem | null {
  if (to === undefined) return null;
  const count = to.replace(/\D/g, '').length;
  if (count >= DIGITS.minimum && count <= DIGITS.maximum) return null;
  return { param: 'to', message: `A phone number has ${DIGITS.minimum} to ${DIGITS.maximum} digits.` };
}

function contentProblem({ content, check }: SendForm, request: SendRequest): Problem | null {
  if (content === null || check === undefined) return null;
  return check(request[content] as never, content);
}
