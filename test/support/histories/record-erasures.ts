import { insertUser } from '../../../src/features/users/user-store.ts';
import {
  eraseConversation,
  eraseCustomer,
  eraseTenant,
  eraseUser,
  eraseWaba,
} from '../../../src/ops/erasures/erasures.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { messageBody } from '../../integration/messages/media/media-stack.ts';
import { takeIn } from '../take-in.ts';
import { testSecretBox } from '../test-accounts.ts';
import { eventually } from '../webhook-receiver.ts';
import { ended, type Recorded } from './record-deliveries.ts';
import { type RecordingStack, WABA } from './recording-stack.ts';

const CUSTOMER = '12025550143';

/** Runs of `eraseCustomer`, `eraseConversation`, `eraseUser`, `eraseWaba` and `eraseTenant`; the accounts are gone then. */
export async function recordErasures(stack: RecordingStack): Promise<Recorded> {
  const { database } = stack;
  const tools = { database, secretBox: testSecretBox, actor: SYSTEM };
  const write = async () => {
    await takeIn(database, messageBody({ type: 'text', text: { body: 'hello' } }).body);
  };
  const done = async (workflowId: string): Promise<string> => {
    await eventually(`the start of ${workflowId}`, () =>
      stack.client.workflow
        .getHandle(workflowId)
        .describe()
        .then(
          () => true,
          () => false,
        ),
    );
    await ended(stack, workflowId);
    return workflowId;
  };
  await write();
  const customer = await eraseCustomer(tools, WABA, { phone: CUSTOMER });
  const ofCustomer = await done(`eraseCustomer/${customer.subjectId}`);
  await write();
  const [row] = await query<{ id: string }>(database, 'select max(id) as id from conversations');
  const conversation = await eraseConversation(tools, WABA, row?.id ?? '');
  const ofConversation = await done(`eraseConversation/${conversation.subjectId}`);
  const user = { email: 'kim@example.com', name: 'Kim', isOperator: false, passwordHash: null };
  const userId = await insertUser(database, user);
  await eraseUser(tools, { actor: SYSTEM, tenantId: null, userId: null }, userId);
  const ofUser = await done(`eraseUser/${userId}`);
  const waba = await eraseWaba(tools, WABA);
  const ofWaba = await done(`eraseWaba/${WABA}`);
  await eraseTenant(tools, waba.tenantId ?? '');
  const ofTenant = await done(`eraseTenant/${waba.tenantId}`);
  return {
    'erase-customer-done': ofCustomer,
    'erase-conversation-done': ofConversation,
    'erase-user-done': ofUser,
    'erase-waba-done': ofWaba,
    'erase-tenant-done': ofTenant,
  };
}
