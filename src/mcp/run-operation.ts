import { randomUUID } from 'node:crypto';
import { type ApiAccess, type ApiAnswer, type ApiRequest, callApi, failure } from './api-call.ts';
import { IDEMPOTENCY_ARGUMENT } from './idempotency-argument.ts';
import type { Tool } from './tool-data.ts';

export type Arguments = Readonly<Record<string, unknown>>;

/** Some 15,000 tokens: what hosts take without complaint. */
const MAX_ANSWER_CHARS = 50_000;

/** No header can carry another text; the API checks the rest. */
const HEADER_TEXT = /^[\x20-\x7e]{1,255}$/;

/** The API says what is wrong with the arguments, but for ids in the path. */
export async function runOperation(
  access: ApiAccess,
  tool: Tool,
  args: Arguments,
  signal: AbortSignal,
): Promise<ApiAnswer> {
  const { [IDEMPOTENCY_ARGUMENT]: givenKey, ...others } = args;
  const key = tool.isIdempotent ? String(givenKey ?? randomUUID()) : null;
  const input = key === null ? args : others;
  const badName = pathNames(tool).find((name) => !isSegment(input[name]));
  if (badName !== undefined) {
    return failure('invalid_parameter', `"${badName}" must be an id.`, { param: badName });
  }
  const unchosen = Object.entries(tool.choices).find(
    ([name, values]) => input[name] !== undefined && !values.includes(String(input[name])),
  );
  if (unchosen !== undefined) {
    const [param, values] = unchosen;
    return failure('invalid_parameter', `For this tool, "${param}" can only be ${values.join(' or ')}.`, {
      param,
    });
  }
  if (key !== null && !HEADER_TEXT.test(key)) {
    const message = 'The key must be 1 to 255 visible ASCII characters.';
    return failure('invalid_parameter', message, { param: IDEMPOTENCY_ARGUMENT });
  }
  const headers = key === null ? {} : { 'idempotency-key': key };
  const call = async (current: Arguments) =>
    await callApi(access, { ...requestOf(tool, current), headers }, signal);
  const answer = await fittingPage(tool, input, call);
  return withKey(bounded(answer), key);
}

function pathNames({ path }: Tool): string[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);
}

/** A segment of dots would lead to another path. */
function isSegment(value: unknown): boolean {
  return (typeof value === 'string' || typeof value === 'number') && !/^\.{0,2}$/.test(String(value));
}

function requestOf(tool: Tool, input: Arguments): ApiRequest {
  const { method, path, queryNames } = tool;
  const inPath = pathNames(tool);
  const hasBody = method !== 'GET' && method !== 'DELETE';
  const given = Object.entries(input).filter(
    ([name, value]) => !inPath.includes(name) && value !== undefined,
  );
  // An unknown argument goes with the others: the API refuses it by its name.
  const isInQuery = ([name]: [string, unknown]) => !hasBody || queryNames.includes(name);
  const search = new URLSearchParams(
    given.filter(isInQuery).map(([name, value]): [string, string] => [name, textOf(value)]),
  );
  const filled = path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(String(input[name])));
  return {
    method,
    path: search.size === 0 ? filled : `${filled}?${search}`,
    ...(hasBody && { body: Object.fromEntries(given.filter((each) => !isInQuery(each))) }),
  };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

type Call = (input: Arguments) => Promise<ApiAnswer>;

/** A page that is too large is asked for again with fewer entries, so that its cursor goes on where it ends. */
async function fittingPage({ pageSize }: Tool, input: Arguments, call: Call): Promise<ApiAnswer> {
  let limit = pageSize === 0 ? 0 : Number(input.limit ?? pageSize);
  let answer = await call(input);
  while (!answer.isError && limit > 1 && answer.text.length > MAX_ANSWER_CHARS) {
    limit = Math.max(1, Math.floor((limit * MAX_ANSWER_CHARS * 0.9) / answer.text.length));
    answer = await call({ ...input, limit });
  }
  return answer;
}

function bounded({ isError, text }: ApiAnswer): ApiAnswer {
  if (text.length <= MAX_ANSWER_CHARS) return { isError, text };
  const start = text.slice(0, MAX_ANSWER_CHARS).toWellFormed();
  return { isError, text: `${start}\n[cut after ${MAX_ANSWER_CHARS} of ${text.length} characters]` };
}

/** After an error it is not known whether the message went out: the same key asks for the first outcome. */
function withKey(answer: ApiAnswer, key: string | null): ApiAnswer {
  if (key === null || !answer.isError) return answer;
  const note = `To repeat this call without sending twice, pass ${IDEMPOTENCY_ARGUMENT} ${JSON.stringify(key)}.`;
  return { isError: true, text: `${answer.text}\n${note}` };
}
