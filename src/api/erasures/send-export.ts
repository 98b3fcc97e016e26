import type { FastifyReply, FastifyRequest } from 'fastify';
import type { exportCustomer } from '../../ops/erasures/export-customer.ts';
import { countedAddress } from '../../platform/http/counted-address.ts';
import { type DownloadShares, goneSignal } from '../shares/download-shares.ts';

/** Waits for another export of the WABA. Throws as `exportCustomer`, and ApiError 503. */
export async function sendExport(
  { request, reply, exports }: { request: FastifyRequest; reply: FastifyReply; exports: DownloadShares },
  { wabaId, tenantId }: { wabaId: string; tenantId: string },
  makeExport: () => ReturnType<typeof exportCustomer>,
): Promise<FastifyReply> {
  const owners = { file: wabaId, address: countedAddress(request.ip), tenant: tenantId };
  const archive = await exports.open(owners, goneSignal(reply), async () => {
    const { fileName, archive } = await makeExport();
    reply.header('content-disposition', `attachment; filename="${fileName}"`);
    return archive;
  });
  return reply.type('application/zip').send(archive);
}
