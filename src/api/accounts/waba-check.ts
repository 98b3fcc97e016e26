import { Type } from 'typebox';
import { checkWaba, type WabaFindings } from '../../ops/health/waba-check.ts';
import { named, text } from '../external/schema-kit.ts';
import { restOperation } from '../operations/operation.ts';

export const WabaCheck = named('WabaCheck', {
  wabaId: text('900000000000101'),
  checks: Type.Array(
    Type.Object({
      id: text('token'),
      question: text('Does upstream accept the access token?'),
      status: Type.Enum(['up', 'degraded', 'down', 'unknown'], { examples: ['up'] }),
      detail: text('Yes.'),
      todo: Type.Optional(text('Create a system user token for this WABA, and save it for the WABA.')),
    }),
  ),
});

export const checkOwnWaba = restOperation({
  id: 'checkWaba',
  method: 'GET',
  path: '/api/external/waba-check',
  scope: 'read',
  summary: 'Check the WABA',
  description:
    'Follows a webhook from the upstream platform to your endpoints: access token, subscription of the app, phone numbers, ' +
    'activity, quarantined items, endpoints. Asks upstream with each request; a question without its response is `unknown`. ' +
    '`todo` is the advice for a `status` other than `up`. More checks can come.',
  tag: 'Account',
  answers: { 200: { schema: WabaCheck, description: 'The findings of each check.' } },
  run: async (call) => {
    const { wabaId } = call;
    return wabaCheckJson(wabaId, await checkWaba(call, wabaId));
  },
});

export function wabaCheckJson(wabaId: string, found: WabaFindings) {
  return { wabaId, checks: Object.entries(found).map(([id, finding]) => ({ id, ...finding })) };
}
