import type { ErasedTable } from '../../platform/erasing.ts';
import { columnsOf } from '../../platform/postgres/arrays.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { deleteUpTo, execute, query, queryValue } from '../../platform/postgres/sql.ts';

/** A message template as upstream last listed or reported it; null: it has not said. */
export type MessageTemplate = {
  templateId: string;
  name: string;
  language: string;
  status: string | null;
  category: string | null;
  quality: string | null;
  rejectedReason: string | null;
  /** JSON as upstream listed it; null: not listed since it was made or changed. */
  content: string | null;
  /** The latest time of what is known of it. */
  updatedAt: Date;
};

const COLUMNS = `template_id as "templateId", name, language, status, category, quality,
  rejected_reason as "rejectedReason", content, greatest(status_at, category_at, quality_at, content_at) as "updatedAt"`;

/** What is null was not said. `isChanged`: its content is no longer that which was listed. */
export type TemplateReport = Omit<MessageTemplate, 'updatedAt' | 'content'> & {
  wabaId: string;
  at: Date;
  content: string | null;
  isChanged: boolean;
};

/** `en-US` and `en_US` are one: upstream writes both. */
export function languageOf(code: string): string {
  return code.replaceAll('-', '_');
}

/** Keeps what upstream says of templates. Of each member the latest report counts, in whatever order they come. */
export async function noteTemplates(
  trx: Transaction | Database,
  reports: readonly TemplateReport[],
): Promise<void> {
  for (const batch of batchesOf(reports)) {
    await execute(
      trx,
      `insert into message_templates as t (waba_id, template_id, name, language, status, rejected_reason, category, quality, content,
                                           status_at, category_at, quality_at, content_at)
       select w.waba_id, template_id, name, language, status, rejected_reason, category, quality, content,
              case when status is not null then at end, case when category is not null then at end,
              case when quality is not null then at end, case when content is not null or is_changed then at end
         from unnest(:wabaId::text[], :templateId::text[], :name::text[], :language::text[], :status::text[], :rejectedReason::text[],
                     :category::text[], :quality::text[], :content::text[], :isChanged::boolean[], :at::timestamptz[])
           as g (waba_id, template_id, name, language, status, rejected_reason, category, quality, content, is_changed, at)
         join wabas w on w.waba_id = g.waba_id and w.removed_at is null
        order by w.waba_id, template_id
       on conflict (waba_id, template_id) do update set
         name = coalesce(nullif(excluded.name, ''), t.name),
         language = coalesce(nullif(excluded.language, ''), t.language),
         ${latest('status', 'status_at')},
         ${latest('rejected_reason', 'status_at')},
         ${latest('category', 'category_at')},
         ${latest('quality', 'quality_at')},
         ${latest('content', 'content_at')},
         status_at = greatest(t.status_at, excluded.status_at),
         category_at = greatest(t.category_at, excluded.category_at),
         quality_at = greatest(t.quality_at, excluded.quality_at),
         content_at = greatest(t.content_at, excluded.content_at)`,
      columnsOf(
        batch,
        ...([
          'wabaId',
          'templateId',
          'name',
          'language',
          'status',
          'rejectedReason',
          'category',
          'quality',
        ] as const),
        ...(['content', 'isChanged', 'at'] as const),
      ),
    );
  }
}

const latest = (column: string, at: string) =>
  `${column} = case when excluded.${at} >= coalesce(t.${at}, '-infinity') then excluded.${column} else t.${column} end`;

/** A statement changes a row once: several reports of one template come one after the other. */
function batchesOf(reports: readonly TemplateReport[]): TemplateReport[][] {
  const batches: Map<string, TemplateReport>[] = [];
  for (const report of reports) {
    const key = `${report.wabaId} ${report.templateId}`;
    const free = batches.find((batch) => !batch.has(key));
    if (free === undefined) batches.push(new Map([[key, report]]));
    else free.set(key, report);
  }
  return batches.map((batch) => [...batch.values()]);
}

/** Notes the end of a walk over all templates of a WABA: what it did not meet, and nothing reported since it began, is gone. */
export async function endTemplateWalk(database: Database, wabaId: string, startedAt: Date): Promise<void> {
  await database.transaction(async (trx) => {
    const gone = `delete from message_templates where waba_id = :wabaId
                     and greatest(status_at, category_at, quality_at, content_at) < :startedAt`;
    await execute(trx, gone, { wabaId, startedAt });
    const text = 'update wabas set templates_listed_at = :startedAt where waba_id = :wabaId';
    await execute(trx, text, { wabaId, startedAt });
  });
}

/** For how long upstream keeps a template that it archived; what is deleted is known so long too, unless a walk ends it before. */
const DELETED_KEPT_DAYS = 28;

/** Removes templates that are deleted where no walk does: upstream takes no token of the WABA, or it is removed. */
export async function forgetDeletedTemplates(database: Database, limit: number): Promise<number> {
  const which = `status = 'DELETED' and status_at < now() - interval '${DELETED_KEPT_DAYS} days'`;
  return await deleteUpTo(database, limit, 'message_templates', which);
}

/** When the templates of a WABA were last listed; null: never. */
export async function templatesListedAt(database: Database, wabaId: string): Promise<Date | null> {
  const text = 'select templates_listed_at as at from wabas where waba_id = :wabaId';
  return await queryValue<Date>(database, text, { wabaId });
}

export type TemplateSearch = Partial<Record<'name' | 'status' | 'category' | 'language', string>>;

/** By name and language, behind those of `after`. */
export async function listTemplates(
  database: Database,
  wabaId: string,
  search: TemplateSearch,
  { after, limit }: { after: readonly string[]; limit: number },
): Promise<MessageTemplate[]> {
  const { name = null, status = null, category = null, language = null } = search;
  const [afterName = null, afterLanguage = null, afterId = null] = after;
  return await query<MessageTemplate>(
    database,
    `select ${COLUMNS} from message_templates
      where waba_id = :wabaId and (cast(:name as text) is null or name = :name)
        and (cast(:status as text) is null or status = :status)
        and (cast(:category as text) is null or category = :category)
        and (cast(:language as text) is null or language = :language)
        and (cast(:afterName as text) is null
             or (name, language, template_id) > (cast(:afterName as text), cast(:afterLanguage as text), cast(:afterId as text)))
      order by name, language, template_id limit :limit`,
    {
      wabaId,
      name,
      status,
      category,
      language: language === null ? null : languageOf(language),
      afterName,
      afterLanguage,
      afterId,
      limit,
    },
  );
}

/** The template that a message names; null: it is not known, or is known in other languages only. */
export async function findTemplate(
  database: Database,
  wabaId: string,
  named: { name: string; language: string },
): Promise<MessageTemplate | null> {
  const [found = null] = await query<MessageTemplate>(
    database,
    `select ${COLUMNS} from message_templates
      where waba_id = :wabaId and name = :name and language = :language and coalesce(status <> 'DELETED', true)
      order by status_at desc nulls last limit 1`,
    { wabaId, name: named.name, language: languageOf(named.language) },
  );
  return found;
}

export const MESSAGE_TEMPLATES: ErasedTable = {
  table: 'message_templates',
  count: 'templates',
  key: 'waba_id, template_id',
};
