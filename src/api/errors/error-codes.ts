/** Every error code of the HTTP API: the one list behind the answers and the page /docs/errors. */

type ErrorType = 'authentication_error' | 'invalid_request_error' | 'api_error';

type ErrorCodeDefinition = {
  readonly status: number;
  readonly type: ErrorType;
  /** What the answer says unless the place that raises it knows better. */
  readonly message: string;
  /** What to do about it, for the documentation. */
  readonly advice: string;
};

const define = <T extends Record<string, ErrorCodeDefinition>>(codes: T): T => codes;

export const ERROR_CODES = define({
  invalid_api_key: {
    status: 401,
    type: 'authentication_error',
    message: 'The request carries no valid API key.',
    advice:
      'Send the header "Authorization: Bearer <API key>". The key is missing, malformed, unknown or revoked; the answer does not tell which.',
  },
  expired_api_key: {
    status: 401,
    type: 'authentication_error',
    message: 'The API key has expired.',
    advice: 'Ask for a new key and use it instead.',
  },
  invalid_signature: {
    status: 401,
    type: 'authentication_error',
    message: 'X-Hub-Signature-256 does not sign this body.',
    advice:
      'Concerns POST /upstream/webhook only. The app secret of the upstream app and the one in the settings differ, or something on the way changed the body.',
  },
  verification_failed: {
    status: 403,
    type: 'authentication_error',
    message: 'The verification token is not the right one.',
    advice:
      'Concerns GET /upstream/webhook only. Enter the verify token of the settings in the upstream app.',
  },
  invalid_parameter: {
    status: 400,
    type: 'invalid_request_error',
    message: 'A parameter is not valid.',
    advice:
      'The member "param" names the parameter, "message" says what it must be. Unknown parameters are refused.',
  },
  invalid_cursor: {
    status: 400,
    type: 'invalid_request_error',
    message: 'The cursor is not valid for this list.',
    advice:
      'Pass "nextCursor" of the page before, unchanged, to the same path with the same filters and a key of the same WABA; or start again without a cursor.',
  },
  invalid_request: {
    status: 400,
    type: 'invalid_request_error',
    message: 'The request is malformed.',
    advice: 'Check the spelling of the URL (percent-encoding) and the headers.',
  },
  not_found: {
    status: 404,
    type: 'invalid_request_error',
    message: 'There is no such object.',
    advice: 'The id is unknown, or the object belongs to another WABA than the API key.',
  },
  route_not_found: {
    status: 404,
    type: 'invalid_request_error',
    message: 'There is nothing at this path.',
    advice: 'Check the path.',
  },
  method_not_allowed: {
    status: 405,
    type: 'invalid_request_error',
    message: 'This path does not answer this method.',
    advice: 'The header Allow lists the methods that the path answers.',
  },
  request_timeout: {
    status: 408,
    type: 'invalid_request_error',
    message: 'The request did not arrive in time.',
    advice: 'Send it again; check the network between you and the service.',
  },
  body_too_large: {
    status: 413,
    type: 'invalid_request_error',
    message: 'The request body is too large.',
    advice: 'Send a smaller body.',
  },
  unsupported_media_type: {
    status: 415,
    type: 'invalid_request_error',
    message: 'The content type of the request is not supported.',
    advice: 'Send JSON with the header "Content-Type: application/json".',
  },
  headers_too_large: {
    status: 431,
    type: 'invalid_request_error',
    message: 'The URL and headers of the request are too large.',
    advice: 'Keep URL and headers below 16 KiB together.',
  },
  internal_error: {
    status: 500,
    type: 'api_error',
    message: 'Something went wrong on our side.',
    advice: 'Try again. If it goes on, tell the operator the request id: the log has the cause under it.',
  },
  service_unavailable: {
    status: 503,
    type: 'api_error',
    message: 'The service cannot answer at the moment.',
    advice: 'Try again after the time in the header Retry-After.',
  },
});

export type ErrorCode = keyof typeof ERROR_CODES;
