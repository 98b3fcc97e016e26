import type { FastifyReply, FastifyRequest } from 'fastify';
import { type TProperties, Type } from 'typebox';
import { retryEndpoint } from '../../../deliveries/retry-now.ts';
import { type GivenCertificate, setClientCertificate } from '../../../endpoints/endpoint-certificate.ts';
import { deleteEndpoint, enableEndpoint, holdEndpoint } from '../../../endpoints/endpoint-modes.ts';
import { rotateSecret, rotateSigningKey } from '../../../endpoints/endpoint-secrets.ts';
import { endpointStatus } from '../../../endpoints/endpoints.ts';
import { invalidValue } from '../../../platform/request-input.ts';
import { shownCount } from '../../../queue/waiting.ts';
import { accountObjectId } from '../../external/schema-kit.ts';
import { PAGES } from '../access/page-access.ts';
import { orShown } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { viewerOf, wabaOf } from '../access/viewer.ts';
import { postForm } from '../components/form.ts';
import { utcText } from '../components/time.ts';
import { EMPTY_FORM, type FormValues, formLine, formOf, formValues } from '../form-values.ts';
import { html } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { sendEndpointPage } from './endpoint-page.ts';
import { endpointPath, endpointsPath, toolsOf, urlFor } from './endpoint-status.ts';
import { sendSecretPage } from './secret-page.ts';

const params = Type.Object({ wabaId: Type.String(), id: Type.String() });
const OPTIONS = { config: PAGES.admin, schema: { params, body: EMPTY_FORM } };

/** A form with fields of its own. */
const withFields = (fields: TProperties) => ({
  config: PAGES.admin,
  schema: { params, body: formOf(fields) },
});
const PATH = '/portal/w/:wabaId/endpoints/:id';

/** POST …/pause, …/disable and …/enable: whether events are sent or wait. */
export function endpointModeActions(app: PortalApp, context: PortalContext): void {
  for (const [action, mode] of [
    ['pause', 'paused'],
    ['disable', 'disabled'],
  ] as const) {
    app.post(`${PATH}/${action}`, withFields({ reason: formLine() }), async (request, reply) => {
      const id = accountObjectId(request.params.id);
      return await orExplained(request, reply, context, id, async () => {
        const { wabaId } = wabaOf(request);
        const reason = formValues(request.body).text('reason');
        await holdEndpoint(toolsOf(request, context), wabaId, { id, mode, reason });
        return reply.redirect(`${endpointPath(wabaId, id)}?done=${mode}`, 303);
      });
    });
  }
  app.post(`${PATH}/enable`, withFields({ waiting: formLine() }), async (request, reply) => {
    const id = accountObjectId(request.params.id);
    return await orExplained(request, reply, context, id, async () => {
      const { wabaId } = wabaOf(request);
      const waiting = waitingChoice(formValues(request.body).text('waiting'));
      const by = viewerOf(request).email;
      await enableEndpoint(toolsOf(request, context), wabaId, { id, waiting, by });
      const done = waiting === 'send' ? 'sent' : waiting === 'drop' ? 'dropped' : 'enabled';
      return reply.redirect(`${endpointPath(wabaId, id)}?done=${done}`, 303);
    });
  });
}

/** POST …/retry: what waits for a retry is attempted now. */
export function endpointRetryAction(app: PortalApp, context: PortalContext): void {
  app.post(`${PATH}/retry`, OPTIONS, async (request, reply) => {
    const id = accountObjectId(request.params.id);
    return await orExplained(request, reply, context, id, async () => {
      const { wabaId } = wabaOf(request);
      await retryEndpoint(toolsOf(request, context), wabaId, id);
      return reply.redirect(`${endpointPath(wabaId, id)}?done=retried`, 303);
    });
  });
}

function waitingChoice(text: string): 'send' | 'drop' | null {
  if (text === 'send' || text === 'drop') return text;
  if (text === '') return null;
  throw invalidValue('Choose whether the pending events are sent or dropped.');
}

/** POST …/rotate-secret: the response shows the new secret, once. */
export function endpointSecretActions(app: PortalApp, context: PortalContext): void {
  app.post(
    `${PATH}/rotate-secret`,
    withFields({ overlapHours: formLine(), ownSecret: formLine() }),
    async (request, reply) => {
      const id = accountObjectId(request.params.id);
      return await orExplained(request, reply, context, id, async () => {
        const { wabaId } = wabaOf(request);
        const form = formValues(request.body);
        const overlapHours = overlapIn(form, 'overlapHours');
        const own = form.text('ownSecret').trim();
        const rotated = await rotateSecret(toolsOf(request, context), wabaId, id, {
          overlapHours,
          ...(own !== '' && { secret: own }),
        });
        const signatures = await endpointStatus(context.accounts, wabaId, id);
        const until = rotated.previousSecretExpiresAt;
        return sendSecretPage(request, reply, {
          title: 'The secret is rotated',
          secret: rotated.secret,
          signatures,
          next: { label: 'Go to the endpoint', href: endpointPath(wabaId, id) },
          overlap:
            until === null
              ? 'The previous secret has ended: only this one signs.'
              : html`The previous secret also signs until ${utcText(until)}.`,
        });
      });
    },
  );
}

/** POST …/rotate-signing-key: the page of the endpoint shows the new public key. */
export function endpointSigningKeyAction(app: PortalApp, context: PortalContext): void {
  app.post(
    `${PATH}/rotate-signing-key`,
    withFields({ keyOverlapHours: formLine() }),
    async (request, reply) => {
      const id = accountObjectId(request.params.id);
      return await orExplained(request, reply, context, id, async () => {
        const { wabaId } = wabaOf(request);
        const overlapHours = overlapIn(formValues(request.body), 'keyOverlapHours');
        await rotateSigningKey(toolsOf(request, context), wabaId, id, { overlapHours });
        return reply.redirect(`${endpointPath(wabaId, id)}?done=key-rotated`, 303);
      });
    },
  );
}

/** POST …/client-certificate and …/client-certificate/remove: what is shown to a server that asks for a certificate. */
export function endpointCertificateActions(app: PortalApp, context: PortalContext): void {
  const path = `${PATH}/client-certificate`;
  app.post(
    path,
    withFields({ certificate: formLine(65_536), privateKey: formLine(65_536) }),
    async (request, reply) => {
      const form = formValues(request.body);
      const given = { certificate: form.text('certificate'), privateKey: form.text('privateKey') };
      return await setCertificate(request, reply, given);
    },
  );
  app.post(`${path}/remove`, OPTIONS, async (request, reply) => await setCertificate(request, reply, null));

  type Request = FastifyRequest<{ Params: { id: string } }>;
  async function setCertificate(request: Request, reply: FastifyReply, given: GivenCertificate | null) {
    const id = accountObjectId(request.params.id);
    return await orExplained(request, reply, context, id, async () => {
      const { wabaId } = wabaOf(request);
      await setClientCertificate(toolsOf(request, context), wabaId, id, given);
      const done = given === null ? 'certificate-removed' : 'certificate-set';
      return reply.redirect(`${endpointPath(wabaId, id)}?done=${done}`, 303);
    });
  }
}

function overlapIn(form: FormValues, field: string): number {
  const hours = form.text(field);
  return /^\d{1,3}$/.test(hours) ? Number(hours) : Number.NaN;
}

/** GET and POST …/delete: asks first, with what would be lost. */
export function endpointDeletePages(app: PortalApp, context: PortalContext): void {
  app.get(`${PATH}/delete`, { config: PAGES.admin, schema: { params } }, async (request, reply) => {
    const waba = wabaOf(request);
    const viewer = viewerOf(request);
    const endpoint = await endpointStatus(context.accounts, waba.wabaId, accountObjectId(request.params.id));
    const path = endpointPath(waba.wabaId, endpoint.id);
    const count = shownCount(endpoint.waiting);
    const buttons = html`<div class="buttons"><button class="danger">Delete</button><a class="button" href="${path}">Cancel</a></div>`;
    return sendPage(reply, {
      title: 'Delete this endpoint?',
      active: 'endpoints',
      trail: [
        { label: 'Webhook endpoints', href: endpointsPath(waba.wabaId) },
        { label: endpoint.description || `Endpoint ${endpoint.id}`, href: path },
      ],
      body: html`<div class="card"><p><code class="break">${urlFor(viewer, endpoint.url)}</code></p>
<p>${endpoint.waiting.count === 0 ? 'It has no pending events.' : html`<strong>${count}</strong> pending ${count === '1' ? 'event is' : 'events are'} dropped.`} Its signing secret is deleted. The log of its deliveries stays.</p>
<p>To stop it for a short time, pause it instead.</p>
${postForm(viewer, `${path}/delete`, buttons)}</div>`,
    });
  });
  app.post(`${PATH}/delete`, OPTIONS, async (request, reply) => {
    const { wabaId } = wabaOf(request);
    await deleteEndpoint(toolsOf(request, context), wabaId, accountObjectId(request.params.id));
    return reply.redirect(`${endpointsPath(wabaId)}?done=deleted`, 303);
  });
}

/** A refusal that is not about the endpoint itself is shown on its page. */
async function orExplained(
  request: FastifyRequest,
  reply: FastifyReply,
  context: PortalContext,
  id: string,
  act: () => Promise<FastifyReply>,
): Promise<FastifyReply> {
  return await orShown(act, (error) => {
    if (error.code.startsWith('unknown_')) throw error;
    return sendEndpointPage(request, reply, context, id, error);
  });
}
