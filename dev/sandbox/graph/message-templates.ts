import type { FastifyInstance } from 'fastify';
import type { UpstreamContext } from '../upstream-context.ts';
import { answerFault } from './fault-answer.ts';
import { objectMissing } from './graph-failure.ts';
import { GRAPH_OBJECT_PATH, type GraphObjectRoute, graphPage } from './graph-page.ts';
import { pickFields } from './phone-number-object.ts';

type DemoTemplate = {
  name: string;
  parameter_format: string;
  components: Record<string, unknown>[];
  language: string;
  status: string;
  category: string;
  id: string;
};

const DEMO_TEMPLATES: readonly DemoTemplate[] = [
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
];

/** GET /{version}/{account}/message_templates: the same few for every account. */
export function registerMessageTemplates(app: FastifyInstance, context: UpstreamContext): void {
  app.get<GraphObjectRoute>(`${GRAPH_OBJECT_PATH}/message_templates`, async (request, reply) => {
    const { id } = request.params;
    const fault = context.faults.take('templates', id);
    if (fault !== undefined && (await answerFault(context, reply, fault, { id }))) {
      return reply;
    }
    if (context.phones.ofWaba(id).length === 0) {
      const { status, body } = objectMissing(id);
      return reply.code(status).send(body);
    }
    const { name, status, category, language, fields } = request.query;
    const asked = DEMO_TEMPLATES.filter(
      (template) =>
        (name === undefined || template.name.includes(name)) &&
        (status === undefined || template.status === status) &&
        (category === undefined || template.category === category) &&
        (language === undefined || template.language === language),
    );
    const shown = asked.map((template) => pickFields({ ...template }, fields));
    return graphPage(shown, request.query, `http://${request.host}${request.url}`);
  });
}
