import type { FastifyInstance, FastifyReply } from 'fastify';
import type { AccountObject } from '../account-objects.ts';
import type { JsonObject } from '../payloads/webhook-body.ts';
import type { UpstreamContext } from '../upstream-context.ts';
import { answerFault } from './fault-answer.ts';
import { type GraphFailure, invalidParameter, objectMissing, templateMissing } from './graph-failure.ts';
import { GRAPH_OBJECT_PATH, type GraphObjectRoute, graphPage } from './graph-page.ts';
import { pickFields } from './phone-number-object.ts';

/** The templates that every account begins with. */
export const DEMO_TEMPLATES: readonly AccountObject[] = [
  {
    name: 'order_ready',
    parameter_format: 'POSITIONAL',
    components: [
      { type: 'HEADER', format: 'TEXT', text: 'Your order' },
      {
        type: 'BODY',
        text: 'Hello {{1}}, your order {{2}} is ready.',
        example: { body_text: [['Asha', 'ORD-7']] },
      },
      { type: 'FOOTER', text: 'Fixture Store' },
      { type: 'BUTTONS', buttons: [{ type: 'QUICK_REPLY', text: 'On my way' }] },
    ],
    language: 'en_US',
    status: 'APPROVED',
    category: 'UTILITY',
    id: '990000000000001',
  },
  {
    name: 'order_ready',
    parameter_format: 'POSITIONAL',
    components: [{ type: 'BODY', text: 'Hallo {{1}}, Ihre Bestellung {{2}} ist fertig.' }],
    language: 'de',
    status: 'APPROVED',
    category: 'UTILITY',
    id: '990000000000002',
  },
  {
    name: 'summer_offer',
    parameter_format: 'POSITIONAL',
    components: [
      {
        type: 'HEADER',
        format: 'IMAGE',
        example: { header_handle: ['https://example.com/templates/summer.jpg'] },
      },
      { type: 'BODY', text: 'Ten per cent off all mugs until Sunday.' },
      { type: 'BUTTONS', buttons: [{ type: 'URL', text: 'Shop now', url: 'https://example.com/shop' }] },
    ],
    language: 'en_US',
    status: 'APPROVED',
    category: 'MARKETING',
    id: '990000000000003',
  },
  {
    name: 'login_code',
    parameter_format: 'POSITIONAL',
    components: [
      { type: 'BODY', text: '*{{1}}* is your verification code.', add_security_recommendation: true },
      { type: 'BUTTONS', buttons: [{ type: 'OTP', otp_type: 'COPY_CODE', text: 'Copy code' }] },
    ],
    language: 'en_US',
    status: 'APPROVED',
    category: 'AUTHENTICATION',
    id: '990000000000004',
  },
  {
    name: 'winter_offer',
    parameter_format: 'NAMED',
    components: [{ type: 'BODY', text: 'Hello {{first_name}}, all cups are warm again.' }],
    language: 'en_US',
    status: 'REJECTED',
    category: 'MARKETING',
    id: '990000000000005',
  },
  {
    name: 'winter_sale',
    parameter_format: 'POSITIONAL',
    components: [
      {
        type: 'BODY',
        text: 'Hello {{1}}, {{2}} off all cups until Sunday.',
        example: { body_text: [['Asha', '20 %']] },
      },
    ],
    language: 'en_US',
    status: 'APPROVED',
    category: 'MARKETING',
    id: '990000000000006',
  },
];

type TemplateRoute = GraphObjectRoute & { Body: JsonObject | undefined };

const MAX_TEMPLATES = 6_000;

/** Counts of all templates of an account, by the names that were asked for. */
function summaryOf(all: readonly AccountObject[], asked: string): JsonObject {
  const counts: JsonObject = {
    total_count: all.length,
    message_template_count: all.length,
    message_template_limit: MAX_TEMPLATES,
    are_translations_complete: false,
  };
  return Object.fromEntries(
    asked.split(',').flatMap((name) => (name in counts ? [[name, counts[name]]] : [])),
  );
}

/** /{version}/{account}/message_templates: a few that every account has, and those that it made. */
export function registerMessageTemplates(app: FastifyInstance, context: UpstreamContext): void {
  const { templates } = context.objects;
  const path = `${GRAPH_OBJECT_PATH}/message_templates`;
  app.addHook('preHandler', async (request, reply) => {
    const { id } = request.params as { id: string };
    if (!/\/(message_template|template_)/.test(request.url)) return;
    const fault = context.faults.take('templates', id);
    if (fault !== undefined && (await answerFault(context, reply, fault, { id }))) return reply;
    if (context.phones.ofWaba(id).length === 0) return await refuse(reply, objectMissing(id));
  });
  app.get<GraphObjectRoute>(path, async ({ params, query, host, url }) => {
    const { name, status, category, language, source, fields, summary } = query;
    const all = templates.ofWaba(params.id);
    const asked = all.filter(
      (template) =>
        (name === undefined || String(template.name).includes(name)) &&
        (status === undefined || template.status === status) &&
        (category === undefined || template.category === category) &&
        (language === undefined || template.language === language) &&
        (source !== 'AUTO_GENERATED' || String(template.name).startsWith('auto_generated_')),
    );
    const shown = asked.map((template) => pickFields({ ...template }, fields));
    const page = graphPage(shown, query, `http://${host}${url}`);
    return summary === undefined ? page : { ...page, summary: summaryOf(all, summary) };
  });
  app.post<TemplateRoute>(path, async ({ params, body }, reply) => {
    const { name, language, category } = body ?? {};
    if (![name, language, category].every((one) => typeof one === 'string')) {
      return refuse(reply, invalidParameter(100, 'A template has a name, a language and a category.'));
    }
    if (!hasExamples(context, body?.components)) {
      return refuse(
        reply,
        invalidParameter(100, 'A header with media needs the handle of an uploaded example.'),
      );
    }
    // The review of the sandbox takes no time.
    const { id } = templates.make(params.id, { parameter_format: 'POSITIONAL', ...body, status: 'APPROVED' });
    return { id, status: 'PENDING', category };
  });
  app.delete<GraphObjectRoute>(path, async ({ params, query }, reply) => {
    const gone = templates
      .ofWaba(params.id)
      .filter(({ id, name }) => (query.hsm_id === undefined ? name === query.name : id === query.hsm_id));
    for (const { id } of gone) templates.remove(id);
    return gone.length > 0 ? { success: true } : refuse(reply, objectMissing(query.name ?? ''));
  });
  app.get<GraphObjectRoute>(`${GRAPH_OBJECT_PATH}/message_template_previews`, async ({ query }) => ({
    data: (query.languages ?? query.language ?? 'en_US').split(',').map((language) => ({
      language,
      body: '*{{1}}* is your verification code.',
      buttons: [{ type: 'OTP', text: 'Copy code' }],
    })),
  }));
  for (const edge of ['template_analytics', 'template_group_analytics', 'pricing_analytics'])
    app.get<GraphObjectRoute>(`${GRAPH_OBJECT_PATH}/${edge}`, async () => ({ data: [] }));
}

/** Why the platform would not send the template of a message from a number of this WABA, or undefined. */
export function templateProblem(
  { objects }: UpstreamContext,
  wabaId: string,
  message: JsonObject,
): GraphFailure | undefined {
  if (message.type !== 'template') return undefined;
  const { name, language } = message.template as { name: string; language: { code: string } };
  const code = language.code.replace('-', '_');
  const known = objects.templates
    .ofWaba(wabaId)
    .some((one) => one.name === name && one.language === code && one.status === 'APPROVED');
  return known ? undefined : templateMissing(name, code);
}

const MEDIA_FORMATS = ['IMAGE', 'VIDEO', 'DOCUMENT'];

function hasExamples({ uploads }: UpstreamContext, components: unknown): boolean {
  const headers = Array.isArray(components) ? (components as JsonObject[]) : [];
  return headers
    .filter(({ format }) => MEDIA_FORMATS.includes(String(format)))
    .every(({ example }) => {
      const [handle] = (example as { header_handle?: unknown[] } | undefined)?.header_handle ?? [];
      return typeof handle === 'string' && uploads.isHandle(handle);
    });
}

function refuse(reply: FastifyReply, { status, body }: GraphFailure): FastifyReply {
  return reply.code(status).send(body);
}
