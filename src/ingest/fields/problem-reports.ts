import { type ProblemReport, unpaidReport } from '../../features/accounts/upstream-problems.ts';
import { membersOf } from '../../platform/json/json-members.ts';
import type { FieldItem } from '../split/field-items.ts';
import type { StatusItem } from '../split/status-items.ts';
import type { Owned } from '../split/upstream-items.ts';
import { lineOf, notAfter } from './field-values.ts';

type Value = Record<string, unknown>;
type Report = Pick<ProblemReport, 'kind' | 'subject' | 'reason' | 'days'>;
type Reader = (value: Value) => Report[];

const DAYS = 7;
/** A copy of a message (standby) shows that another responder shares the number. */
const SHARED_DAYS = 1;
const MAX_CHARS = 200;

const text = (value: unknown) => lineOf(value, MAX_CHARS);

function template(value: Value): string {
  const [name, language] = [text(value.message_template_name), text(value.message_template_language)];
  return `The template ${name || text(value.message_template_id)}${language && ` (${language})`}`;
}

const STOPPED = new Set(['REJECTED', 'PAUSED', 'DISABLED', 'FLAGGED', 'LOCKED', 'LIMIT_EXCEEDED']);

function templateStatus(value: Value): Report[] {
  const event = text(value.event).toUpperCase();
  const subject = text(value.message_template_id);
  if (event === '' || subject === '') return [];
  const why = text(value.reason);
  const because = why === '' || why === 'NONE' ? '' : `: ${why}`;
  const reason = STOPPED.has(event) ? `${template(value)} is ${event}${because}.` : null;
  return [{ kind: 'template_stopped', subject: `status of ${subject}`, reason, days: null }];
}

function templateQuality(value: Value): Report[] {
  const subject = text(value.message_template_id);
  const score = text(value.new_quality_score).toUpperCase();
  if (subject === '' || score === '') return [];
  const isLow = score === 'RED' || score === 'YELLOW';
  const reason = isLow ? `${template(value)} has dropped to the quality ${score}.` : null;
  return [{ kind: 'template_stopped', subject: `quality of ${subject}`, reason, days: null }];
}

function templateCategory(value: Value): Report[] {
  const subject = text(value.message_template_id);
  // With a change that is to come, the new category is the present one.
  const [coming, present] = [text(value.correct_category), text(value.new_category)];
  const before = coming === '' ? text(value.previous_category) : present;
  if (subject === '' || (present === '' && coming === '')) return [];
  const change = coming ? `is to become ${coming}` : `is now ${present}`;
  const reason = `${template(value)} ${change}${before && `; it ${coming ? 'is' : 'was'} ${before}`}. Upstream bills it as such.`;
  return [{ kind: 'template_stopped', subject: `category of ${subject}`, reason, days: DAYS }];
}

function numberQuality(value: Value): Report[] {
  const number = text(value.display_phone_number);
  const event = text(value.event).toUpperCase();
  const limit = text(value.max_daily_conversations_per_business) || text(value.current_limit);
  if (number === '') return [];
  const flag = { kind: 'number_restricted', subject: `flag of ${number}`, days: null } as const;
  if (event === 'FLAGGED') {
    return [{ ...flag, reason: `The number ${number} is flagged: its quality is low.` }];
  }
  if (event === 'UNFLAGGED') return [{ ...flag, reason: null }];
  const tier = { kind: 'number_restricted', subject: `limit of ${number}`, days: DAYS } as const;
  if (event === 'DOWNGRADE') {
    return [{ ...tier, reason: `The messaging limit of ${number} was lowered${limit && ` to ${limit}`}.` }];
  }
  return event === 'UPGRADE' ? [{ ...tier, reason: null }] : [];
}

const BANNED = new Set(['DISABLE', 'SCHEDULE_FOR_DISABLE']);

function account(value: Value): Report[] {
  const event = text(value.event).toUpperCase();
  const report = (subject: string, reason: string | null, days: number | null): Report[] => [
    { kind: 'account_restricted', subject, reason, days },
  ];
  const violation = () => {
    const type = text(membersOf(value.violation_info).violation_type) || 'unknown';
    return report(`violation ${type}`, `Upstream reports a violation of its policy: ${type}.`, DAYS);
  };
  switch (event) {
    case 'ACCOUNT_VIOLATION':
      return violation();
    case 'ACCOUNT_RESTRICTION': {
      const given = value.restriction_info;
      // A warning, as about Direct Send, restricts nothing.
      if (given === undefined && value.violation_info !== undefined) return violation();
      const types = (Array.isArray(given) ? given : [given]).map((one) =>
        text(membersOf(one).restriction_type),
      );
      const named = [...new Set(types)].filter((type) => type !== '').slice(0, 5);
      if (named.length === 0) return report('restriction', 'The account is restricted.', DAYS);
      return named.flatMap((type) =>
        report(`restriction ${type}`, `The account is restricted: ${type}.`, DAYS),
      );
    }
    case 'DISABLED_UPDATE': {
      const state = text(membersOf(value.ban_info).waba_ban_state).toUpperCase();
      return report('ban', BANNED.has(state) ? `The account is banned or will be: ${state}.` : null, null);
    }
    case 'ACCOUNT_DELETED':
      return report('deletion', 'The account was deleted.', DAYS);
    default:
      return [];
  }
}

/**
 * Each after webhooks/reference/<field> below developers.facebook.com/documentation/business-messaging/whatsapp. That page
 * has only throughput left of `phone_number_quality_update`: `FLAGGED`, `UNFLAGGED`, `UPGRADE` and `DOWNGRADE` are after the
 * older docs/whatsapp/business-management-api/webhooks/components. `restriction_info` is a list there and an object in the
 * forwards of some providers.
 */
const READERS: Readonly<Record<string, Reader>> = {
  message_template_status_update: templateStatus,
  message_template_quality_update: templateQuality,
  template_category_update: templateCategory,
  phone_number_quality_update: numberQuality,
  account_update: account,
};

/** Numbers whose messages upstream did not deliver for want of a payment method. */
export function unpaidReports(statuses: readonly Owned<StatusItem>[], now: Date): ProblemReport[] {
  return statuses.map(({ item: { phoneNumberId, at }, wabaId }) =>
    unpaidReport(wabaId, phoneNumberId, notAfter(at, now)),
  );
}

/** The problems that a change in a field reports; a value of another form than upstream documents reports none. */
export function problemReports(
  { field, wabaId, phoneNumberId, valueJson, reportedAt }: FieldItem,
  now: Date,
): ProblemReport[] {
  const at = notAfter(reportedAt, now);
  if (field === 'standby' && phoneNumberId !== null) {
    const reason = `Another responder has conversations of the number ${phoneNumberId}.`;
    return [
      { kind: 'number_shared', subject: phoneNumberId, reason, days: SHARED_DAYS, wabaId, reportedAt: at },
    ];
  }
  const read = Object.hasOwn(READERS, field) ? READERS[field] : undefined;
  if (read === undefined) return [];
  const value: unknown = JSON.parse(valueJson);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  return read(value as Value).map((report) => ({ ...report, wabaId, reportedAt: at }));
}
