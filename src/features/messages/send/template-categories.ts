import type { TemplatePage } from '../../../platform/graph/graph-calls.ts';
import type { GraphClient } from '../../../platform/graph/graph-client.ts';
import { membersOf, textOf } from '../../../platform/json/json-members.ts';

/** With what upstream can be asked, once it has to be. */
export type AskUpstream = () => Promise<{ client: Pick<GraphClient, 'listMessageTemplates'>; token: string }>;

export type TemplateCategories = ReturnType<typeof makeTemplateCategories>;

const KNOWN_FOR_MS = 300_000;
const MAX_KNOWN = 10_000;

/** The categories of templates, as upstream listed them less than five minutes ago: upstream moves templates to other ones. */
export function makeTemplateCategories(now: () => number = Date.now) {
  const known = new Map<string, { category: string | null; atMs: number }>();
  return {
    /** Null: upstream lists no such template, or says nothing at present. */
    async categoryOf(wabaId: string, content: unknown, ask: AskUpstream): Promise<string | null> {
      const { name, language } = membersOf(content);
      const wanted = { name: textOf(name), language: plainCode(membersOf(language).code) };
      const key = JSON.stringify([wabaId, wanted.name, wanted.language]);
      const present = known.get(key);
      if (present !== undefined && now() - present.atMs < KNOWN_FOR_MS) return present.category;
      const page = await listNamed(ask, wabaId, wanted.name).catch(() => null);
      if (page === null) return null;
      const named = page.templates.filter((one) => one.name === wanted.name);
      const own = named.find((one) => plainCode(one.language) === wanted.language) ?? named[0];
      const category = textOf(own?.category) || null;
      if (known.size >= MAX_KNOWN) known.clear();
      known.set(key, { category, atMs: now() });
      return category;
    },
  };
}

async function listNamed(ask: AskUpstream, wabaId: string, name: string): Promise<TemplatePage> {
  const { client, token } = await ask();
  return await client.listMessageTemplates(wabaId, { filter: { name }, limit: 100, after: null, token });
}

/** Upstream writes `en_US` and `en-US`. */
function plainCode(code: unknown): string {
  return textOf(code).replaceAll('-', '_').toLowerCase();
}
