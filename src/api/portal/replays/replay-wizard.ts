import type { FastifyReply, FastifyRequest } from 'fastify';
import { listEndpoints } from '../../../endpoints/store.ts';
import { AccountError } from '../../../platform/account-error.ts';
import type { ReplayCount } from '../../../replays/replay-count.ts';
import { countReplay, startReplay } from '../../../replays/replays.ts';
import { PAGES } from '../access/page-access.ts';
import { sendPage } from '../access/send-page.ts';
import { viewerOf } from '../access/viewer.ts';
import { wabaOf } from '../access/waba-of.ts';
import { toolsOf } from '../endpoints/endpoint-context.ts';
import { formValues } from '../form-values.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { chooseForm, countedView } from './replay-form.ts';
import { NEW_REPLAY, type ReplayFormValues, readReplayForm, selectionOf } from './replay-form-values.ts';
import { replaysPath } from './replay-view.ts';

type Step = { values: ReplayFormValues; count: ReplayCount | null; error: AccountError | null };

/** /portal/w/:wabaId/replays/new: choose, count, start. */
export function replayWizard(app: PortalApp, context: PortalContext): void {
  app.get('/portal/w/:wabaId/replays/new', { config: PAGES.admin }, async (request, reply) => {
    const endpointId = formValues(request.query).text('endpointId').trim();
    return await sendStep(request, reply, context, {
      values: { ...NEW_REPLAY, endpointId },
      count: null,
      error: null,
    });
  });
  app.post('/portal/w/:wabaId/replays/new', { config: PAGES.admin }, async (request, reply) => {
    const form = formValues(request.body);
    const values = readReplayForm(form);
    if (form.text('change') !== '') {
      return await sendStep(request, reply, context, { values, count: null, error: null });
    }
    return await orChooseAgain(request, reply, context, values, async () => {
      const count = await countReplay(context, wabaOf(request).wabaId, selectionOf(values));
      return await sendStep(request, reply, context, { values, count, error: null });
    });
  });
  app.post('/portal/w/:wabaId/replays', { config: PAGES.admin }, async (request, reply) => {
    const values = readReplayForm(formValues(request.body));
    return await orChooseAgain(request, reply, context, values, async () => {
      const { wabaId } = wabaOf(request);
      const by = viewerOf(request).email;
      const { replayId } = await startReplay(toolsOf(request, context), wabaId, selectionOf(values), by);
      return reply.redirect(`${replaysPath(wabaId)}/${replayId}`, 303);
    });
  });
}

async function orChooseAgain(
  request: FastifyRequest,
  reply: FastifyReply,
  context: PortalContext,
  values: ReplayFormValues,
  act: () => Promise<FastifyReply>,
): Promise<FastifyReply> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof AccountError)) throw error;
    return await sendStep(request, reply, context, { values, count: null, error });
  }
}

const FIELDS = ['endpointId', 'from', 'to', 'states', 'eventTypes', 'deliveryIds'];

async function sendStep(
  request: FastifyRequest,
  reply: FastifyReply,
  { database }: PortalContext,
  { values, count, error }: Step,
): Promise<FastifyReply> {
  const waba = wabaOf(request);
  const viewer = viewerOf(request);
  const path = replaysPath(waba.wabaId);
  const form = { viewer, path, values, error, endpoints: await listEndpoints(database, waba.wabaId) };
  const isAtField = error !== null && FIELDS.includes(error.param ?? '');
  const text = isAtField ? 'The selection is not valid: see the field below.' : error?.message;
  const view = {
    title: count === null ? 'New replay' : 'Dry run',
    ...{ viewer, waba },
    active: 'replays',
    trail: [{ label: 'Replays', href: path }],
    lead:
      count === null
        ? 'Step 1 of 2: select deliveries. Nothing is sent before you have seen their number.'
        : 'Step 2 of 2: nothing has been sent yet.',
    assets: ['webhooks.css'],
    notice: text === undefined ? null : { kind: 'error' as const, text },
    body: count === null ? chooseForm(form) : countedView({ ...form, count }),
  };
  return sendPage(reply, view, error === null ? 200 : 422);
}
