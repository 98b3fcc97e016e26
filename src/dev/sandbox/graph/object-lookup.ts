import type { FastifyInstance, FastifyReply } from 'fastify';
import type { UpstreamContext } from '../upstream-context.ts';
import { answerFault } from './fault-answer.ts';
import { objectMissing } from './graph-failure.ts';
import { GRAPH_OBJECT_PATH, type GraphObjectRoute } from './graph-paths.ts';
import { phoneNumberObject, pickFields } from './phone-number-object.ts';

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

/** GET /{version}/{id}: a phone number, an account, or the address and digest of a media object. */
export function registerObjectLookup(app: FastifyInstance, context: UpstreamContext): void {
  app.get<GraphObjectRoute>(GRAPH_OBJECT_PATH, async (request, reply) => {
    const { id } = request.params;
    const phone = context.phones.find(id);
    if (phone !== undefined) {
      return pickFields(phoneNumberObject(phone), request.query.fields);
    }
    const [first] = context.phones.ofWaba(id);
    if (first !== undefined) {
      return pickFields({ id, name: first.verifiedName, currency: 'USD' }, request.query.fields);
    }
    return answerMedia(context, id, reply);
  });
}
