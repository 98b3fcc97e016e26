import type { Operation } from '../api/operations/operation.ts';
import { OPERATIONS } from '../api/operations/operations.ts';
import type { AllowedLevel } from './allowed-levels.ts';

export type Level = 'read' | AllowedLevel;

/** The scope of an operation decides its level, so that no list can make a change out to be a look. */
const LEVELS: Partial<Record<Operation['scope'], Level>> = {
  any: 'read',
  read: 'read',
  readEvents: 'read',
  readWebhooks: 'read',
  send: 'send',
  manageWebhooks: 'operate',
};

/** A destructive call loses something or cannot be taken back; to repeat an idempotent one changes nothing more. */
export type Effect = { isDestructive: boolean; isIdempotent: boolean };

const LOOKS: Effect = { isDestructive: false, isIdempotent: true };
const ADDS: Effect = { isDestructive: false, isIdempotent: false };
const SETS: Effect = { isDestructive: false, isIdempotent: true };

/** No tool creates keys, changes URLs, shows secrets, deletes or erases through a model, or says that a customer agrees to something. */
const CHOSEN: Readonly<Record<string, Effect>> = {
  getAccountIdentity: LOOKS,
  getUsage: LOOKS,
  getMessageUsage: LOOKS,
  // Its sibling with a GET would put phone numbers into addresses.
  searchConversations: LOOKS,
  getConversation: LOOKS,
  listConversationMessages: LOOKS,
  getMessage: LOOKS,
  listScheduledMessages: LOOKS,
  listBroadcasts: LOOKS,
  getBroadcast: LOOKS,
  listBroadcastRecipients: LOOKS,
  listEvents: LOOKS,
  getEvent: LOOKS,
  listReplays: LOOKS,
  getReplay: LOOKS,
  listWebhookEndpoints: LOOKS,
  getWebhookEndpoint: LOOKS,
  getWebhookEndpointStatistics: LOOKS,
  listEndpointAlerts: LOOKS,
  getOwnKey: LOOKS,
  listTemplates: LOOKS,
  listMessageTemplates: LOOKS,
  getPayment: LOOKS,
  searchOptOuts: LOOKS,
  addOptOut: SETS,
  sendMessage: { isDestructive: true, isIdempotent: false },
  markMessageRead: SETS,
  controlThread: SETS,
  testWebhookEndpoint: ADDS,
  retryDelivery: ADDS,
  retryWebhookEndpoint: ADDS,
  replayEvent: ADDS,
  startReplay: ADDS,
  pauseReplay: SETS,
  resumeReplay: SETS,
  cancelReplay: { isDestructive: true, isIdempotent: true },
  pauseWebhookEndpoint: SETS,
  enableWebhookEndpoint: SETS,
};

/** The values that a tool may give a parameter, where the operation has more: a model drops no deliveries. */
export type Choices = Readonly<Record<string, readonly string[]>>;

const CHOICES: Readonly<Record<string, Choices>> = { enableWebhookEndpoint: { waiting: ['send'] } };

export type OperationTool = { operation: Operation; effect: Effect; level: Level; choices: Choices };

/** In the order of the API's document; those that only read are always there. */
export function operationTools(allowed: readonly AllowedLevel[]): OperationTool[] {
  const tools = OPERATIONS.flatMap((operation) => {
    const effect = CHOSEN[operation.id];
    if (effect === undefined) return [];
    return [{ operation, effect, level: levelOf(operation), choices: CHOICES[operation.id] ?? {} }];
  });
  const levels: readonly Level[] = ['read', ...allowed];
  return tools.filter(({ level }) => levels.includes(level));
}

function levelOf({ id, scope }: Operation): Level {
  const level = LEVELS[scope];
  if (level === undefined) throw new Error(`the operation ${id} of the scope ${scope} cannot be a tool`);
  return level;
}
