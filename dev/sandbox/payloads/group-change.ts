import { randomBytes } from 'node:crypto';
import type { PhoneNumber } from '../demo-accounts.ts';
import type { GroupRecipient, SandboxGroup } from '../group-register.ts';
import { userIdOf } from './customer-identity.ts';
import type { JsonObject } from './webhook-body.ts';

/** What can happen to a group. */
export const GROUP_ACTIONS = ['create', 'join', 'leave', 'rename', 'suspend', 'release', 'delete'] as const;

export type GroupAction = (typeof GROUP_ACTIONS)[number];

const LIFECYCLE = 'group_lifecycle_update';
const PARTICIPANTS = 'group_participants_update';
const STATUS = 'group_status_update';

function reportOf(
  action: GroupAction,
  { subject, description, id, phone }: SandboxGroup,
  waIds: readonly string[],
): { field: string; report: JsonObject } {
  const people = waIds.map((waId) => ({ wa_id: waId, user_id: userIdOf(waId, phone) }));
  const link = { invite_link: `https://chat.whatsapp.com/${Buffer.from(id).toString('hex').slice(0, 22)}` };
  const settings = { subject, ...(description === '' ? {} : { description }) };
  switch (action) {
    case 'create':
      return {
        field: LIFECYCLE,
        report: { type: 'group_create', ...settings, ...link, join_approval_mode: 'auto_approve' },
      };
    case 'delete':
      return { field: LIFECYCLE, report: { type: 'group_delete' } };
    case 'join':
      return {
        field: PARTICIPANTS,
        report: { type: 'group_participants_add', reason: 'invite_link', added_participants: people },
      };
    case 'leave':
      return {
        field: PARTICIPANTS,
        report: {
          type: 'group_participants_remove',
          initiated_by: 'participant',
          removed_participants: people,
        },
      };
    case 'rename':
      return {
        field: 'group_settings_update',
        report: {
          type: 'group_settings_update',
          group_subject: { text: subject, update_successful: true },
        },
      };
    case 'suspend':
      return { field: STATUS, report: { type: 'group_suspend' } };
    case 'release':
      return { field: STATUS, report: { type: 'group_suspend_cleared' } };
  }
}

/** A webhook body that reports what happened to a group. */
export function buildGroupChange(
  action: GroupAction,
  group: SandboxGroup,
  waIds: readonly string[],
  nowMs: number,
): JsonObject {
  const { field, report } = reportOf(action, group, waIds);
  const seconds = Math.floor(nowMs / 1_000);
  const { phone } = group;
  const value = {
    messaging_product: 'whatsapp',
    metadata: {
      display_phone_number: phone.displayPhoneNumber.replace(/\D/g, ''),
      phone_number_id: phone.phoneNumberId,
    },
    groups: [
      {
        timestamp: String(seconds),
        group_id: group.id,
        request_id: randomBytes(8).toString('hex'),
        ...report,
      },
    ],
  };
  const changes = [{ field, value }];
  return {
    object: 'whatsapp_business_account',
    entry: [{ id: phone.wabaId, time: seconds, changes }],
  };
}

/** One status of a message to a group: as a whole when it is sent, of each member afterwards. */
export function groupStatuses(
  group: GroupRecipient,
  status: string,
  phone: PhoneNumber,
): { participantId?: string; fields: JsonObject }[] {
  const whole = { recipient_id: group.id, recipient_type: 'group' };
  if (status === 'sent' || status === 'failed') return [{ fields: whole }];
  return group.members.map((waId) => ({
    participantId: waId,
    fields: {
      ...whole,
      recipient_participant_id: waId,
      recipient_participant_user_id: userIdOf(waId, phone),
    },
  }));
}
