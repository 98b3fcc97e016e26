import type { SendingStack } from './sending-stack.ts';

/** Asks the API with the stack's key, unless another one is given; JSON in, JSON out. */
export async function askApi(
  stack: SendingStack,
  url: string,
  { method = 'GET', body = undefined as unknown, authorization = '' } = {},
) {
  const response = await stack.app.inject({
    method: method as 'GET',
    url,
    headers: {
      authorization: authorization || stack.authorization,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { payload: JSON.stringify(body) }),
  });
  return { status: response.statusCode, headers: response.headers, body: response.json() };
}
