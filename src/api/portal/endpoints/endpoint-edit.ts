import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { listPhoneNumbers } from '../../../accounts/accounts.ts';
import type { EndpointMove } from '../../../endpoints/endpoint-move.ts';
import {
  addEndpoint,
  type EndpointStatus,
  endpointStatus,
  updateEndpoint,
} from '../../../endpoints/endpoints.ts';
import { AccountError } from '../../../platform/account-error.ts';
import { accountObjectId } from '../../external/object-id.ts';
import { PAGES } from '../access/page-access.ts';
import { sendPage } from '../access/send-page.ts';
import { viewerOf } from '../access/viewer.ts';
import { wabaOf } from '../access/waba-of.ts';
import { formValues } from '../form-values.ts';
import { type Child, nothing } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { endpointPath, endpointsPath, toolsOf } from './endpoint-context.ts';
import { endpointForm } from './endpoint-form.ts';
import {
  type EndpointFormValues,
  NEW_ENDPOINT,
  optionsOf,
  readEndpointForm,
  valuesOf,
} from './endpoint-form-values.ts';
import { sendSecretPage } from './secret-page.ts';
import { urlVerdict } from './url-check.ts';

type Shown = {
  /** Null: a new one. */
  endpoint: EndpointStatus | null;
  values: EndpointFormValues;
  error?: AccountError | null;
  urlCheck?: Child;
};

/** /portal/w/:wabaId/endpoints/new: the secret is on the page that answers the form, and nowhere else. */
export function endpointCreatePages(app: PortalApp, context: PortalContext): void {
  app.get('/portal/w/:wabaId/endpoints/new', { config: PAGES.admin }, async (request, reply) =>
    sendForm(request, reply, context, { endpoint: null, values: NEW_ENDPOINT }),
  );
  app.post('/portal/w/:wabaId/endpoints', { config: PAGES.admin }, async (request, reply) => {
    const values = readEndpointForm(formValues(request.body));
    return await submitted(request, reply, context, { endpoint: null, values }, async () => {
      const { wabaId } = wabaOf(request);
      const created = await addEndpoint(toolsOf(request, context), wabaId, optionsOf(values));
      return sendSecretPage(request, reply, {
        title: 'The endpoint is added',
        secret: created.secret,
        signatureProfile: created.signatureProfile,
        next: { label: 'To the endpoint', href: endpointPath(wabaId, created.id) },
        overlap: null,
      });
    });
  });
}

const IdParams = Type.Object({ wabaId: Type.String(), id: Type.String() });

/** /portal/w/:wabaId/endpoints/:id/edit */
export function endpointEditPages(app: PortalApp, context: PortalContext): void {
  const path = '/portal/w/:wabaId/endpoints/:id/edit';
  const options = { config: PAGES.admin, schema: { params: IdParams } };
  const known = async (request: FastifyRequest, id: string) =>
    await endpointStatus(context.accounts, wabaOf(request).wabaId, accountObjectId(id));
  app.get(path, options, async (request, reply) => {
    const endpoint = await known(request, request.params.id);
    return await sendForm(request, reply, context, { endpoint, values: valuesOf(endpoint) });
  });
  app.post(path, options, async (request, reply) => {
    const endpoint = await known(request, request.params.id);
    const values = readEndpointForm(formValues(request.body));
    return await submitted(request, reply, context, { endpoint, values }, async () => {
      const { wabaId } = wabaOf(request);
      const move = await updateEndpoint(toolsOf(request, context), wabaId, endpoint.id, optionsOf(values));
      return reply.redirect(`${endpointPath(wabaId, endpoint.id)}?done=${doneCode(move)}`, 303);
    });
  });
}

function doneCode({ droppedHeaderNames, secretRotationAdvised }: EndpointMove): string {
  if (!secretRotationAdvised) return 'saved';
  return droppedHeaderNames.length === 0 ? 'moved' : 'moved-without-headers';
}

/** Saves, or shows the form again with what was written: for the check of the URL alone, or with what is wrong. */
async function submitted(
  request: FastifyRequest,
  reply: FastifyReply,
  context: PortalContext,
  shown: Shown,
  save: () => Promise<FastifyReply>,
): Promise<FastifyReply> {
  if (formValues(request.body).text('check') !== '') {
    const urlCheck = await urlVerdict(context, shown.values.url);
    return await sendForm(request, reply, context, { ...shown, urlCheck });
  }
  try {
    return await save();
  } catch (error) {
    if (!(error instanceof AccountError)) throw error;
    return await sendForm(request, reply, context, { ...shown, error });
  }
}

async function sendForm(
  request: FastifyRequest,
  reply: FastifyReply,
  { accounts, config }: PortalContext,
  { endpoint, values, error = null, urlCheck = nothing }: Shown,
): Promise<FastifyReply> {
  const waba = wabaOf(request);
  const viewer = viewerOf(request);
  const list = endpointsPath(waba.wabaId);
  const own = endpoint === null ? null : endpointPath(waba.wabaId, endpoint.id);
  const form = endpointForm({
    viewer,
    action: own === null ? list : `${own}/edit`,
    label: own === null ? 'Add the endpoint' : 'Save',
    cancelHref: own ?? list,
    checkHref: `${list}/check-url`,
    values,
    phoneNumbers: await listPhoneNumbers(accounts.database, waba.wabaId),
    headerNames: endpoint === null ? [] : endpoint.customHeaderNames,
    defaults: {
      retryScheduleSeconds: config.webhooks.retryScheduleMs.map((ms) => ms / 1_000),
      timeoutMs: config.webhooks.timeoutMs,
    },
    error,
    urlCheck,
  });
  const trail = [{ label: 'Webhook endpoints', href: list }];
  if (own !== null && endpoint !== null) trail.push({ label: `Endpoint ${endpoint.id}`, href: own });
  const view = {
    title: endpoint === null ? 'Add an endpoint' : 'Edit the endpoint',
    ...{ viewer, waba, trail },
    active: 'endpoints',
    assets: ['webhooks.css', 'webhooks.js'],
    notice:
      error === null
        ? null
        : {
            kind: 'error' as const,
            text: error.param === null ? error.message : 'Nothing was saved: see the field below.',
          },
    body: form,
  };
  return sendPage(reply, view, error === null ? 200 : 422);
}
