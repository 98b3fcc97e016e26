import { Type } from 'typebox';
import { effectivePolicy, readTenantPolicy } from '../../accounts/tenant-policies.ts';
import { readTenantUsage } from '../../accounts/tenant-usage.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { count, NoQuery, nullable } from '../external/schema-kit.ts';
import { accountOf, SCOPES } from '../keys/api-key-auth.ts';
import { documented } from '../openapi/documented.ts';

const limit = (example: number) => nullable(Type.Integer(), example);

const Usage = Type.Object(
  {
    stored: Type.Object({ files: count(1_204), bytes: count(734_003_200), maxBytes: limit(10_737_418_240) }),
    uploadedToday: Type.Object({
      ...{ files: count(12), maxFiles: limit(1_000) },
      ...{ bytes: count(4_194_304), maxBytes: limit(1_073_741_824) },
    }),
    keptDays: Type.Object({ messages: limit(365), media: limit(90), events: limit(90), audit: limit(365) }),
    mediaUrlTtlSeconds: limit(3_600),
  },
  { title: 'Usage' },
);

/** GET /api/external/usage: what the business stores and has uploaded today, and its quotas. */
export function usageRoute(app: ExternalApp, { database, policyDefaults }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'getUsage',
      summary: 'Usage and quotas',
      description:
        'Of all WABAs of the business together. A `max…` of null: no quota. `stored` counts received and uploaded files; ' +
        '`uploadedToday` begins anew at midnight UTC. `keptDays`: after so many days things go; null: never. `mediaUrlTtlSeconds`: for how long a `mediaUrl` is valid; null: it does not expire.',
      tag: 'Account',
      answers: { 200: { description: 'What is used, and the quotas.' } },
    }),
    querystring: NoQuery,
    response: { 200: Usage },
  };
  app.get('/api/external/usage', { schema, config: SCOPES.any }, async (request) => {
    const { tenantId } = accountOf(request);
    const [usage, own] = await Promise.all([
      readTenantUsage(database, tenantId),
      readTenantPolicy(database, tenantId),
    ]);
    const policy = effectivePolicy(own, policyDefaults);
    return {
      stored: { files: usage.storedFiles, bytes: usage.storedBytes, maxBytes: policy.storedBytesQuota },
      uploadedToday: {
        ...{ files: usage.uploadedFiles, maxFiles: policy.uploadFilesPerDay },
        ...{ bytes: usage.uploadedBytes, maxBytes: policy.uploadBytesPerDay },
      },
      keptDays: {
        ...{ messages: policy.messageDays, media: policy.mediaDays },
        ...{ events: policy.eventDays, audit: policy.auditDays },
      },
      mediaUrlTtlSeconds: policy.mediaUrlTtlSeconds,
    };
  });
}
