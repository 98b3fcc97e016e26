import type { TemplatePage } from '../../platform/graph/graph-calls.ts';
import type { GraphClient } from '../../platform/graph/graph-client.ts';
import { membersOf, textOf } from '../../platform/json/json-members.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { endTemplateWalk, languageOf, noteTemplates, type TemplateReport } from './templates.ts';

/** What upstream is asked for of each. */
const TEMPLATE_FIELDS =
  'id,name,language,status,category,components,parameter_format,quality_score,rejected_reason';

const MAX_PAGES = 100;
const PER_PAGE = 100;

/**
 * Copies the templates of a WABA, page by page; those that upstream no longer lists go. False: `mayGoOn` ended it before, and those
 * that were not met stay.
 */
export async function walkTemplates(
  database: Database,
  wabaId: string,
  { client, token }: { client: Pick<GraphClient, 'listMessageTemplates'>; token: string },
  mayGoOn: () => boolean = () => true,
): Promise<boolean> {
  const startedAt = new Date();
  let after: string | null = null;
  for (let page = 0; page < MAX_PAGES && mayGoOn(); page += 1) {
    const asked = { filter: {}, fields: TEMPLATE_FIELDS, limit: PER_PAGE, after, token };
    const listed: TemplatePage = await client.listMessageTemplates(wabaId, asked);
    await noteTemplates(
      database,
      listed.templates.flatMap((template) => reportOf(wabaId, template, startedAt)),
    );
    after = listed.after;
    if (after !== null) continue;
    await endTemplateWalk(database, wabaId, startedAt);
    return true;
  }
  return false;
}

const MAX_TEXT_CHARS = 512;

function reportOf(wabaId: string, template: Record<string, unknown>, at: Date): TemplateReport[] {
  const text = (value: unknown) => textOf(value).toWellFormed().replaceAll('\0', '').slice(0, MAX_TEXT_CHARS);
  const reason = text(template.rejected_reason);
  const templateId = text(template.id);
  if (templateId === '') return [];
  const content = JSON.stringify({
    components: Array.isArray(template.components) ? template.components : [],
    parameter_format: text(template.parameter_format) || 'POSITIONAL',
  });
  return [
    {
      wabaId,
      templateId,
      name: text(template.name),
      language: languageOf(text(template.language)),
      status: text(template.status) || 'UNKNOWN',
      category: text(template.category) || null,
      quality: text(membersOf(template.quality_score).score) || 'UNKNOWN',
      rejectedReason: reason === '' || reason === 'NONE' ? null : reason,
      // JSON writes both of these as escapes.
      content: content.replaceAll('\\u0000', ''),
      isChanged: false,
      at,
    },
  ];
}
