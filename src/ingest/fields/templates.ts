import { languageOf, type TemplateReport } from '../../features/accounts/templates.ts';
import { membersOf } from '../../platform/json/json-members.ts';
import type { FieldItem } from '../split/field-items.ts';
import { lineOf, notAfter } from './field-values.ts';

type Said = Partial<Pick<TemplateReport, 'status' | 'category' | 'quality' | 'rejectedReason' | 'isChanged'>>;

const MAX_CHARS = 512;

const text = (value: unknown) => lineOf(value, MAX_CHARS);

/** Events after which a template can be sent again. */
const APPROVED = new Set(['REINSTATED', 'UNPAUSED', 'UNARCHIVED']);

function status(value: Record<string, unknown>): Said {
  const event = text(value.event).toUpperCase();
  const why = text(value.reason) || text(membersOf(value.rejection_info).reason);
  if (event === '') return {};
  return {
    status: APPROVED.has(event) ? 'APPROVED' : event,
    rejectedReason: why === '' || why === 'NONE' ? null : why,
    category: text(value.message_template_category) || null,
  };
}

/** Upstream announces a change a day before, and then `new_category` is the present one: only a completed change moves a template. */
function category(value: Record<string, unknown>): Said {
  const isCompleted = text(value.previous_category) !== '' && text(value.correct_category) === '';
  return isCompleted ? { category: text(value.new_category).toUpperCase() || null } : {};
}

const READERS: Readonly<Record<string, (value: Record<string, unknown>) => Said>> = {
  message_template_status_update: status,
  message_template_quality_update: (value) => ({
    quality: text(value.new_quality_score).toUpperCase() || null,
  }),
  message_template_components_update: () => ({ isChanged: true }),
  template_category_update: category,
};

/** The template that a change in a field reports, with the members that it says; none for a value of another form than upstream documents. */
export function templateReports(
  { field, wabaId, valueJson, reportedAt }: FieldItem,
  now: Date,
): TemplateReport[] {
  const read = Object.hasOwn(READERS, field) ? READERS[field] : undefined;
  if (read === undefined) return [];
  const value = membersOf(JSON.parse(valueJson));
  const [templateId, said] = [text(value.message_template_id), read(value)];
  if (templateId === '' || Object.values(said).every((one) => one === null)) return [];
  return [
    {
      ...{
        status: null,
        category: null,
        quality: null,
        rejectedReason: null,
        isChanged: false,
        content: null,
      },
      ...said,
      wabaId,
      templateId,
      name: text(value.message_template_name),
      language: languageOf(text(value.message_template_language)),
      at: notAfter(reportedAt, now),
    },
  ];
}
