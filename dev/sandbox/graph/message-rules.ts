import { sendWarnings, shapeProblem } from '../../../src/features/messages/send/check-send.ts';
import { shapeOf } from '../../../src/features/messages/send/send-request.ts';
import { CONTENT_SHAPES } from '../../../src/features/messages/send/shapes/content-shapes.ts';
import { type GraphFailure, invalidParameter } from './graph-failure.ts';
import { orderTotalProblem } from './order-totals.ts';

type Members = Record<string, unknown>;

/** How many characters a text may have, or how many items a list, by path: `*` is any index. */
const SIZES: Readonly<Record<string, readonly [minimum: number, maximum: number]>> = {
  'text/body': [1, 4_096],
  'image/caption': [0, 1_024],
  'video/caption': [0, 1_024],
  'document/caption': [0, 1_024],
  contacts: [1, 257],
  'template/name': [1, 512],
  'interactive/body/text': [1, 1_024],
  'interactive/header/text': [1, 60],
  'interactive/footer/text': [1, 60],
  'interactive/action/button': [1, 20],
  'interactive/action/buttons': [1, 3],
  'interactive/action/buttons/*/reply/id': [1, 256],
  'interactive/action/buttons/*/reply/title': [1, 20],
  'interactive/action/sections': [1, 10],
  'interactive/action/sections/*/title': [1, 24],
  'interactive/action/sections/*/rows/*/id': [1, 200],
  'interactive/action/sections/*/rows/*/title': [1, 24],
  'interactive/action/sections/*/rows/*/description': [1, 72],
  'interactive/action/cards': [2, 10],
  'interactive/action/cards/*/body/text': [1, 160],
  'interactive/action/cards/*/action/parameters/display_text': [1, 20],
  'interactive/action/cards/*/action/buttons/*/quick_reply/id': [1, 256],
  'interactive/action/cards/*/action/buttons/*/quick_reply/title': [1, 20],
  'interactive/action/parameters/display_text': [1, 20],
  'interactive/action/parameters/payload': [1, 512],
  'interactive/action/parameters/reference_id': [1, 35],
  'interactive/action/parameters/order/description': [1, 120],
  'interactive/action/parameters/order/items/*/name': [1, 60],
  'interactive/action/parameters/payment_settings/*/offsite_card_pay/last_four_digits': [4, 4],
};

const LONG_BODY_TYPES = new Set<unknown>(['list']);

/** The values that a member may have, by path. */
const VALUES: Readonly<Record<string, readonly unknown[]>> = {
  'interactive/action/parameters/currency': ['INR', 'BRL'],
  'interactive/action/parameters/total_amount/offset': [100],
  'interactive/action/parameters/payment_settings/*/type': [
    ...['payment_gateway', 'upi_intent_link', 'payment_link'],
    ...['pix_dynamic_code', 'boleto', 'offsite_card_pay'],
  ],
  'interactive/action/cards/*/header/type': ['image', 'video'],
};

/** The name of an interactive action is that of its message, except for these. */
const ACTION_NAMES: Readonly<Record<string, string>> = {
  location_request_message: 'send_location',
  order_details: 'review_and_pay',
  order_status: 'review_order',
};

const FILES = new Set(['image', 'video', 'audio', 'document', 'sticker']);

/** Why the platform would refuse the content of a send, or undefined. */
export function contentProblem(body: Members): GraphFailure | undefined {
  const type = body.type ?? 'text';
  if (typeof type !== 'string' || !(CONTENT_SHAPES.has(type) || type === 'interactive')) {
    return invalidParameter(131009, 'Parameter type is not valid');
  }
  const content = body[type];
  if (content === undefined) return invalidParameter(131008, `Required parameter ${type} is missing`);
  return (
    shapeFailure(type, content) ??
    unexpectedKey(body) ??
    directSendFailure(body, type, content) ??
    sizeFailure(content, type, type, LONG_BODY_TYPES.has((content as Members).type)) ??
    (type === 'interactive' ? interactiveFailure(content as Members) : undefined)
  );
}

function shapeFailure(type: string, content: unknown): GraphFailure | undefined {
  const { shape, isKnown } = shapeOf(type, content);
  const problem = shapeProblem(shape, content, type);
  if (problem !== null) {
    const isMissing = problem.message === 'The parameter is missing.';
    const details = isMissing
      ? `Required parameter ${problem.param} is missing`
      : `Parameter ${problem.param} is not valid`;
    return invalidParameter(isMissing ? 131008 : 131009, details);
  }
  return isKnown ? undefined : invalidParameter(131009, `Parameter ${type}['type'] is not valid`);
}

const CATEGORIES: readonly unknown[] = ['utility', 'authentication', 'service'];
const TTL_SECONDS = { least: 30, most: 43_200 };
const MAX_DIRECT_TEXT_CHARS = 1_024;

/** A message with a category of its own, which stands for a template. */
function directSendFailure(body: Members, type: string, content: unknown): GraphFailure | undefined {
  const { category = 'service', ttl_seconds: ttl, direct_send_config: config } = body;
  if (!CATEGORIES.includes(category)) return invalidParameter(100, 'Param category is not valid.');
  const isDirect = category !== 'service';
  if (!isDirect && ttl === undefined && config === undefined) return undefined;
  if (!isDirect) return invalidParameter(100, 'Unsupported parameter without Direct Send.');
  if (type !== 'text' && type !== 'interactive') {
    return invalidParameter(100, `Direct Send does not support the type ${type}.`);
  }
  const { least, most } = TTL_SECONDS;
  const isTtl = ttl === undefined || (Number.isInteger(ttl) && Number(ttl) >= least && Number(ttl) <= most);
  if (!isTtl) return invalidParameter(100, `Param ttl_seconds must be between ${least} and ${most}.`);
  const { body: text } = content as { body?: unknown };
  const isLong = typeof text === 'string' && text.length > MAX_DIRECT_TEXT_CHARS;
  if (isLong) return invalidParameter(100, `Param text/body must be at most ${MAX_DIRECT_TEXT_CHARS} long.`);
  return undefined;
}

function unexpectedKey(body: Members): GraphFailure | undefined {
  // What stands beside the content is no fault to upstream.
  const unknown = sendWarnings(body as never).find(({ param }) => param.includes('/'));
  if (unknown === undefined) return undefined;
  const names = unknown.param.split('/');
  const name = names.pop();
  return invalidParameter(100, `Unexpected key "${name}" on param "${names.join('.')}".`);
}

/** Checks sizes, values and files, at any depth; `path` has `*` for indexes. */
function sizeFailure(value: unknown, name: string, path: string, isLong: boolean): GraphFailure | undefined {
  const size = SIZES[path];
  const maximum = isLong && path === 'interactive/body/text' ? 4_096 : (size?.[1] ?? 0);
  if (size !== undefined && (typeof value === 'string' || Array.isArray(value))) {
    if (value.length < size[0]) return invalidParameter(131008, `Required parameter ${path} is missing`);
    if (value.length > maximum) {
      return invalidParameter(100, `Param ${path} must be at most ${maximum} long.`);
    }
  }
  if (VALUES[path]?.includes(value) === false) {
    return invalidParameter(131009, `Parameter ${path} is not valid`);
  }
  if (typeof value !== 'object' || value === null) return undefined;
  if (FILES.has(name) && 'id' in value === 'link' in value) {
    return invalidParameter(131008, `Parameter ${path} needs either id or link`);
  }
  for (const [member, inner] of Object.entries(value)) {
    const at = `${path}/${Array.isArray(value) ? '*' : member}`;
    const problem = sizeFailure(inner, Array.isArray(value) ? name : member, at, isLong);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function interactiveFailure({ type, action, body }: Members): GraphFailure | undefined {
  const { name, parameters, cards } = action as { name?: string; parameters?: Members; cards?: Members[] };
  const expected = ACTION_NAMES[String(type)] ?? type;
  if (name !== undefined && name !== expected) {
    return invalidParameter(131009, `Parameter interactive/action/name must be ${expected}`);
  }
  if (body === undefined && type !== 'product') {
    return invalidParameter(131008, 'Required parameter interactive/body is missing');
  }
  if (cards !== undefined && new Set(cards.map(({ card_index: index }) => index)).size < cards.length) {
    return invalidParameter(131009, 'Parameter card_index must be unique');
  }
  const problem = type === 'order_details' ? orderTotalProblem(parameters ?? {}) : null;
  return problem === null ? undefined : invalidParameter(131009, problem);
}
