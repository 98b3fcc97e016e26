import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { pricingAnalytics } from '../bill.ts';
import type { UpstreamContext } from '../upstream-context.ts';
import type { LoggedRequest } from '../upstream-records.ts';
import { isAppToken, registerAppSubscriptions } from './app-subscriptions.ts';
import { answerFault } from './fault-answer.ts';
import { registerFlows } from './flows.ts';
import { invalidParameter, objectMissing, tokenInvalid } from './graph-failure.ts';
import { GRAPH_OBJECT_PATH, type GraphObjectRoute, graphPage } from './graph-page.ts';
import { deleteGroup, groupObject, registerGroups } from './groups.ts';
import { registerMediaDownload } from './media-download.ts';
import { registerMessageTemplates } from './message-templates.ts';
import { registerNumberEdges } from './number-edges.ts';
import { phoneNumberObject, pickFields } from './phone-number-object.ts';
import { registerPhoneNumbers } from './phone-numbers.ts';
import { registerResumableUploads } from './resumable-uploads.ts';
import { registerSendMessage } from './send-message.ts';
import { registerSignupCalls } from './signup-calls.ts';

const MAX_UPLOAD_BYTES = 105 * 1024 * 1024;

/** Notes every request and turns away those without a token. */
function guardRequests(app: FastifyInstance, context: UpstreamContext): void {
  const open = new WeakMap<FastifyRequest, LoggedRequest>();
  app.addHook('onRequest', async (request, reply) => {
    const authorized = hasValidToken(request.headers.authorization, context) || isAppToken(request, context);
    const { id = '' } = request.params as { id?: string };
    const path = request.url.split('?', 1).join('');
    const entry = {
      at: new Date().toISOString(),
      method: request.method,
      path,
      id,
      authorized,
      status: null,
    };
    open.set(request, entry);
    context.requests.add(entry);
    if (!authorized) {
      const { status, body } = tokenInvalid();
      return reply.code(status).send(body);
    }
  });
  app.addHook('onResponse', async (request, reply) => {
    const entry = open.get(request);
    if (entry !== undefined) {
      entry.status = reply.statusCode;
    }
  });
}

/** The part of the server that imitates the upstream platform's own API. */
export async function graphApi(app: FastifyInstance, context: UpstreamContext): Promise<void> {
  guardRequests(app, context);
  app.addContentTypeParser(
    'multipart/form-data',
    { parseAs: 'buffer', bodyLimit: MAX_UPLOAD_BYTES },
    (_request, body, done) => done(null, body),
  );
  app.setErrorHandler<Error & { statusCode?: number }>((error, _request, reply) => {
    const { body } = invalidParameter(100, error.message);
    return reply.code(error.statusCode ?? 500).send(body);
  });
  registerObjectLookup(app, context);
  registerObjectChange(app, context);
  registerMediaDownload(app, context);
  registerMediaUpload(app, context);
  registerMediaDelete(app, context);
  registerPhoneNumbers(app, context);
  registerCatalogProducts(app, context);
  await app.register(async (scope) => registerMessageTemplates(scope, context));
  registerFlows(app, context);
  await app.register(async (scope) => registerResumableUploads(scope, context));
  registerNumberEdges(app, context);
  registerPayments(app, context);
  registerSendMessage(app, context);
  registerGroups(app, context);
  registerAppSubscriptions(app, context);
  registerSignupCalls(app, context);
  registerUnknown(app);
}

/** What the sandbox does not serve has the form of the Graph API too. */
function registerUnknown(app: FastifyInstance): void {
  app.all<{ Params: { version: string; '*': string } }>(
    '/:version(^v\\d+\\.\\d+$)/*',
    async (request, reply) => {
      const [id = ''] = request.params['*'].split('/', 1);
      const { status, body } = objectMissing(id);
      return reply.code(status).send(body);
    },
  );
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** True when the Authorization header carries an acceptable token: the given one or one of the dialog, or any without one. */
function hasValidToken(authorization: string | undefined, { accessToken, signup }: UpstreamContext): boolean {
  const token = /^(?:Bearer|OAuth) (\S+)$/.exec(authorization ?? '')?.[1];
  if (token === undefined) {
    return false;
  }
  if (accessToken === undefined || signup.grantOf(token) !== undefined) {
    return true;
  }
  return timingSafeEqual(digest(token), digest(accessToken));
}

/** DELETE /{version}/{media, flow or group}: it is gone from now on. */
function registerMediaDelete(app: FastifyInstance, context: UpstreamContext): void {
  app.delete<GraphObjectRoute>(GRAPH_OBJECT_PATH, async (request, reply) => {
    const ended = deleteGroup(context, request.params.id);
    if (ended !== undefined) {
      return ended;
    }
    if (context.objects.flows.find(request.params.id) !== undefined) {
      context.objects.flows.remove(request.params.id);
      return { success: true };
    }
    if (!context.media.remove(request.params.id)) {
      const { status, body } = objectMissing(request.params.id);
      return reply.code(status).send(body);
    }
    return { success: true };
  });
}

type PaymentRoute = GraphObjectRoute & {
  Params: GraphObjectRoute['Params'] & { configuration: string; referenceId: string };
};

const CREATED_SECONDS = 1_790_000_000;

/** GET /{version}/{phone}/payments/{configuration}/{reference}: captured, unless either name contains `unknown`. */
function registerPayments(app: FastifyInstance, context: UpstreamContext): void {
  app.get<PaymentRoute>(
    `${GRAPH_OBJECT_PATH}/payments/:configuration/:referenceId`,
    async (request, reply) => {
      const { id, configuration, referenceId } = request.params;
      const fault = context.faults.take('payments', id);
      if (fault !== undefined && (await answerFault(context, reply, fault, { id }))) {
        return reply;
      }
      const isUnknown = `${configuration}/${referenceId}`.includes('unknown');
      if (context.phones.find(id) === undefined || isUnknown) {
        const { status, body } = objectMissing(id);
        return reply.code(status).send(body);
      }
      const transaction = {
        id: `order_${referenceId}`,
        pg_transaction_id: `pay_${referenceId}`,
        type: 'razorpay',
        status: 'success',
        created_timestamp: CREATED_SECONDS,
        updated_timestamp: CREATED_SECONDS,
        method: { type: 'upi' },
      };
      const payment = {
        reference_id: referenceId,
        status: 'captured',
        currency: 'INR',
        total_amount: { value: 21_000, offset: 100 },
        transactions: [transaction],
      };
      return { payments: [payment] };
    },
  );
}

/** More than the gateway ever stores, claimed by a fault of kind `too_large`. */
const TOO_LARGE_BYTES = 100 * 1024 * 1024 + 1;

function differentDigest(sha256Hex: string): string {
  return sha256Hex.replace(/./g, (digit) => (Number.parseInt(digit, 16) ^ 0xf).toString(16));
}

async function answerMedia(context: UpstreamContext, id: string, reply: FastifyReply): Promise<FastifyReply> {
  const fault = context.faults.take('media_lookup', id);
  if (fault !== undefined && (await answerFault(context, reply, fault, { id }))) {
    return reply;
  }
  const media = context.media.find(id);
  if (media === undefined) {
    const { status, body } = objectMissing(id);
    return reply.code(status).send(body);
  }
  return reply.send({
    messaging_product: 'whatsapp',
    url: context.mediaUrls.create(id, { expired: fault?.kind === 'expired' }),
    mime_type: media.mimeType,
    sha256: fault?.kind === 'wrong_hash' ? differentDigest(media.sha256Hex) : media.sha256Hex,
    file_size: fault?.kind === 'too_large' ? TOO_LARGE_BYTES : media.bytes.length,
    id,
  });
}

/** GET /{version}/{id}: a phone number, an account, a template, a flow, a group, or the address and digest of a media object. */
function registerObjectLookup(app: FastifyInstance, context: UpstreamContext): void {
  app.get<GraphObjectRoute>(GRAPH_OBJECT_PATH, async (request, reply) => {
    const { id } = request.params;
    const phone = context.phones.find(id);
    if (phone !== undefined) {
      return pickFields(phoneNumberObject(phone), request.query.fields);
    }
    if (context.phones.hasWaba(id)) {
      const { fields } = request.query;
      const [first] = context.phones.ofWaba(id);
      const waba = pickFields({ id, name: first?.verifiedName ?? 'New business', currency: 'USD' }, fields);
      return { ...waba, ...pricingAnalytics(context.bill, id, fields) };
    }
    const object = context.objects.templates.find(id) ?? context.objects.flows.find(id);
    if (object !== undefined) {
      return pickFields(object, request.query.fields);
    }
    const group = context.groups.find(id);
    if (group !== undefined) {
      return pickFields(groupObject(group), request.query.fields);
    }
    return answerMedia(context, id, reply);
  });
}

/** POST /{version}/{template or flow}: changes its members. */
function registerObjectChange(app: FastifyInstance, { objects }: UpstreamContext): void {
  app.post<GraphObjectRoute & { Body: Record<string, unknown> | undefined }>(
    GRAPH_OBJECT_PATH,
    async ({ params: { id }, body }, reply) => {
      const list = [objects.templates, objects.flows].find((one) => one.find(id) !== undefined);
      if (list === undefined) {
        const refusal = objectMissing(id);
        return reply.code(refusal.status).send(refusal.body);
      }
      list.change(id, body ?? {});
      return { success: true };
    },
  );
}

const DEMO_RETAILER_IDS = ['sku-red-42', 'sku-blue-7'];

function productName(retailerId: string): string {
  const words = retailerId.split(/[-_\s]+/).filter((word) => word !== '' && word !== 'sku');
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join(' ');
  return `Demo ${name === '' ? 'product' : name}`;
}

/** A product made up from its retailer id: the same one every time. */
function demoProduct(retailerId: string): Record<string, unknown> {
  const digest = createHash('sha256').update(retailerId).digest();
  return {
    id: `72${String(digest.readUIntBE(0, 6) % 10 ** 13).padStart(13, '0')}`,
    retailer_id: retailerId,
    name: productName(retailerId),
    image_url: `https://example.com/catalog/${encodeURIComponent(retailerId)}.jpg`,
    availability: 'in stock',
  };
}

/** The retailer ids that the filter asks for; undefined when it cannot be understood. */
function askedRetailerIds(filter: string | undefined): string[] | undefined {
  if (filter === undefined) {
    return DEMO_RETAILER_IDS;
  }
  try {
    const parsed: { retailer_id?: { is_any?: unknown; eq?: unknown } } | null = JSON.parse(filter);
    const condition = parsed?.retailer_id;
    const ids = Array.isArray(condition?.is_any) ? condition.is_any : [condition?.eq];
    return ids.every((id) => typeof id === 'string') ? ids : undefined;
  } catch {
    return undefined;
  }
}

/** GET /{version}/{catalog}/products: a product for any retailer id that does not contain `unknown`. */
function registerCatalogProducts(app: FastifyInstance, context: UpstreamContext): void {
  app.get<GraphObjectRoute>(`${GRAPH_OBJECT_PATH}/products`, async (request, reply) => {
    const { id } = request.params;
    const fault = context.faults.take('catalog', id);
    if (fault !== undefined && (await answerFault(context, reply, fault, { id }))) {
      return reply;
    }
    const asked = askedRetailerIds(request.query.filter);
    if (asked === undefined) {
      const { status, body } = invalidParameter(100, 'The parameter filter is not valid');
      return reply.code(status).send(body);
    }
    const known = [...new Set(asked)].filter((retailerId) => !retailerId.toLowerCase().includes('unknown'));
    // Without fields the API shows the name and the retailer id only.
    const fields = request.query.fields ?? 'id,retailer_id,name';
    const products = known.map((retailerId) => pickFields(demoProduct(retailerId), fields));
    return graphPage(products, request.query, `http://${request.host}${request.url}`);
  });
}

type UploadedFile = { bytes: Buffer; mimeType: string; filename: string };

/** Reads the form with the parser of the platform; undefined when it is not a complete upload. */
async function readUpload(body: unknown, contentType: string | undefined): Promise<UploadedFile | undefined> {
  if (!Buffer.isBuffer(body) || contentType === undefined) {
    return undefined;
  }
  try {
    const headers = { 'content-type': contentType };
    const form = await new Response(new Uint8Array(body), { headers }).formData();
    const file = form.get('file');
    const type = form.get('type');
    if (form.get('messaging_product') !== 'whatsapp' || file === null || typeof file === 'string') {
      return undefined;
    }
    const bytes = Buffer.from(await file.arrayBuffer());
    return { bytes, mimeType: typeof type === 'string' ? type : file.type, filename: file.name };
  } catch {
    return undefined;
  }
}

const MIB = 1024 * 1024;

/** The largest file of each MIME type; stickers may have 500 KiB when they are animated. */
const MAX_BYTES: ReadonlyMap<string, number> = new Map([
  ...['image/jpeg', 'image/png'].map((type) => [type, 5 * MIB] as const),
  ...['audio/aac', 'audio/amr', 'audio/mpeg', 'audio/mp4', 'audio/ogg'].map(
    (type) => [type, 16 * MIB] as const,
  ),
  ...['video/mp4', 'video/3gpp'].map((type) => [type, 16 * MIB] as const),
  ...['text/plain', 'application/pdf', 'application/msword'].map((type) => [type, 100 * MIB] as const),
  ...['application/vnd.ms-excel', 'application/vnd.ms-powerpoint'].map((type) => [type, 100 * MIB] as const),
  ...['wordprocessingml.document', 'spreadsheetml.sheet', 'presentationml.presentation'].map(
    (form) => [`application/vnd.openxmlformats-officedocument.${form}`, 100 * MIB] as const,
  ),
  ['image/webp', 500 * 1024],
]);

/** Why the platform would not take a file, or undefined. */
function fileProblem({ bytes, mimeType }: UploadedFile): string | undefined {
  const maxBytes = MAX_BYTES.get((mimeType.split(';', 1)[0] ?? '').trim());
  if (maxBytes === undefined) {
    const types = [...MAX_BYTES.keys()].join(', ');
    return `Param file must be a file with one of the following types: ${types}. Received file of type '${mimeType}'.`;
  }
  if (bytes.length === 0) {
    return 'Param file is empty.';
  }
  return bytes.length > maxBytes ? `Param file must be at most ${maxBytes} bytes.` : undefined;
}

/** POST /{version}/{phone}/media: takes a multipart upload and answers with its media id. */
function registerMediaUpload(app: FastifyInstance, context: UpstreamContext): void {
  app.post<GraphObjectRoute>(`${GRAPH_OBJECT_PATH}/media`, async (request, reply) => {
    const { id } = request.params;
    if (context.phones.find(id) === undefined) {
      const { status, body } = objectMissing(id);
      return reply.code(status).send(body);
    }
    const fault = context.faults.take('media_upload', id);
    if (fault !== undefined && (await answerFault(context, reply, fault, { id }))) {
      return reply;
    }
    const upload = await readUpload(request.body, request.headers['content-type']);
    if (upload === undefined) {
      const details = 'An upload is a form with messaging_product=whatsapp, type and file';
      const { status, body } = invalidParameter(100, details);
      return reply.code(status).send(body);
    }
    const problem = fileProblem(upload);
    if (problem !== undefined) {
      const { status, body } = invalidParameter(100, problem);
      return reply.code(status).send(body);
    }
    return { id: context.media.put(upload).id };
  });
}
