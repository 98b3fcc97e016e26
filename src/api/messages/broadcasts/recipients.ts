import { Type } from 'typebox';
import { addRecipients } from '../../../features/messages/broadcasts/broadcast-lines.ts';
import { RECIPIENT_STATES } from '../../../features/messages/broadcasts/broadcast-recipients.ts';
import { recipientsOf } from '../../../features/messages/broadcasts/broadcasts.ts';
import { PAGE_PARAMETERS, walkOf } from '../../external/page.ts';
import { closed, listOf, optionalParameter } from '../../external/schema-kit.ts';
import { restOperation } from '../../operations/operation.ts';
import { AddedRecipients, BroadcastRecipient, NewRecipients, OF_BROADCAST } from './broadcast-schemas.ts';

const BODY_LIMIT_BYTES = 256 * 1024;

const add = restOperation({
  id: 'addBroadcastRecipients',
  method: 'POST',
  path: '/api/external/broadcasts/:id/recipients',
  scope: 'send',
  summary: 'Add recipients to a broadcast',
  description:
    'Up to 1,000 in a body of up to 256 KiB, and 100,000 in all. Each line has its result: a recipient that the broadcast has is a `duplicate` and stays as it was, so a request may be repeated; an `invalid` line names its member and adds nothing. After the start: 409 `broadcast_started`.',
  ...OF_BROADCAST,
  errors: ['broadcast_started', 'broadcast_too_large'],
  requests: {
    recipients: {
      recipients: [
        { to: '+1 202-555-0143', parameters: ['Asha', '20 %'], ref: 'customer-4711' },
        { to: '+1 202-555-0144', parameters: ['Ben', '10 %'] },
      ],
    },
  },
  body: NewRecipients,
  answers: {
    200: {
      description: 'The result of each line, in their order.',
      schema: AddedRecipients,
      example: {
        added: 1,
        duplicate: 1,
        invalid: 1,
        lines: [
          { result: 'added' },
          { result: 'duplicate' },
          {
            result: 'invalid',
            param: 'recipients/2/to',
            message: 'The customer must be a phone number with its country code.',
          },
        ],
      },
    },
  },
  route: { bodyLimit: BODY_LIMIT_BYTES },
  run: async ({ tools, wabaId }, { id, recipients }) => {
    const lines = await addRecipients(tools, { wabaId, broadcastId: id }, recipients);
    const counted = (result: string) => lines.filter((line) => line.result === result).length;
    return {
      added: counted('added'),
      duplicate: counted('duplicate'),
      invalid: counted('invalid'),
      lines,
    };
  },
});

const list = restOperation({
  id: 'listBroadcastRecipients',
  method: 'GET',
  path: '/api/external/broadcasts/:id/recipients',
  scope: 'read',
  summary: 'List the recipients of a broadcast',
  description:
    'In the order in which they were added, with how far the message of each is. `errorCode` of a failed one is upstream’s code, or the service’s own. A page looks at 5,000 recipients at most: with `state` it may hold few or none although `hasMore` is true.',
  ...OF_BROADCAST,
  query: closed({
    ...PAGE_PARAMETERS,
    state: optionalParameter(Type.Enum([...RECIPIENT_STATES]), 'Those in this state only.', 'failed'),
  }),
  answers: { 200: { description: 'A page of recipients.', schema: listOf(BroadcastRecipient) } },
  run: async (call, { id, state = null, ...page }) => {
    const { cursors, tools, wabaId } = call;
    const { after, limit, nextCursor } = walkOf(cursors, [wabaId, 'recipients', id], page, { state });
    const walk = { state, afterId: after[0] ?? null, limit };
    const { recipients, hasMore, position } = await recipientsOf(tools, { wabaId, broadcastId: id }, walk);
    const data = recipients.map(({ recipient, ref, state: reached, messageId, code }) => ({
      to: recipient,
      ref,
      state: reached,
      serviceMessageId: messageId,
      errorCode: code,
    }));
    return { data, hasMore, nextCursor: nextCursor(position === null ? null : [position], hasMore) };
  },
});

export const RECIPIENT_OPERATIONS = [add, list];
