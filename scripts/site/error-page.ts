import { ERROR_CODES } from '../../src/api/errors/error-codes.ts';
import { jsonBlock, type Page, paragraphs, table } from './markdown.ts';

const EXAMPLE = {
  error: {
    type: 'invalid_request_error',
    code: 'invalid_parameter',
    message: 'The parameter must be <= 100.',
    param: 'limit',
    docUrl: '…/docs/errors#invalid_parameter',
    requestId: 'req_…',
  },
};

/** Every error code: `docUrl` of an error leads to its heading. */
export function errorPage(): Page {
  const codes = Object.entries(ERROR_CODES).sort(([, one], [, other]) => one.status - other.status);
  const text = paragraphs([
    '# Errors',
    'Every error is JSON of this form. Tell `code` apart in programs; `message` is for people and may change. The request id is also in the header `X-Request-Id`.',
    jsonBlock(EXAMPLE),
    table(
      ['status', 'code', 'message'],
      codes.map(([code, { status, message }]) => [String(status), `[\`${code}\`](#${code})`, message]),
    ),
    ...codes.flatMap(([code, { status, type, message, advice }]) => [
      `## \`${code}\` {#${code}}`,
      `${status} · \`${type}\``,
      message,
      advice,
    ]),
  ]);
  return { path: 'errors.md', text };
}
