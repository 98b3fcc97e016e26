import { Type } from 'typebox';
import { effectivePolicy, readTenantPolicy } from '../../features/accounts/tenant-policies.ts';
import { readTenantUsage } from '../../features/accounts/tenant-usage.ts';
import { count, named, nullable } from '../external/schema-kit.ts';
import { restOperation } from '../operations/operation.ts';

const limit = (example: number) => nullable(Type.Integer(), example);

const Usage = named('Usage', {
  stored: Type.Object({ files: count(1_204), bytes: count(734_003_200), maxBytes: limit(10_737_418_240) }),
  uploadedToday: Type.Object({
    files: count(12),
    maxFiles: limit(1_000),
    bytes: count(4_194_304),
    maxBytes: limit(1_073_741_824),
  }),
  keptDays: Type.Object({ messages: limit(365), media: limit(90), events: limit(90), audit: limit(365) }),
  mediaUrlTtlSeconds: limit(3_600),
});

export const getUsage = restOperation({
  id: 'getUsage',
  method: 'GET',
  path: '/api/external/usage',
  scope: 'any',
  summary: 'Get usage and quotas',
  description:
    'Of all WABAs of the business together. A `max…` of null: no quota. `stored` counts received and uploaded files; ' +
    '`uploadedToday` starts again at midnight UTC. `keptDays`: the days after which data is deleted; null: never. `mediaUrlTtlSeconds`: the seconds for which a `mediaUrl` is valid; null: it does not expire.',
  tag: 'Account',
  answers: { 200: { schema: Usage, description: 'The usage and the quotas.' } },
  run: async ({ database, policyDefaults, account: { tenantId } }) => {
    const [usage, own] = await Promise.all([
      readTenantUsage(database, tenantId),
      readTenantPolicy(database, tenantId),
    ]);
    const policy = effectivePolicy(own, policyDefaults);
    return {
      stored: { files: usage.storedFiles, bytes: usage.storedBytes, maxBytes: policy.storedBytesQuota },
      uploadedToday: {
        files: usage.uploadedFiles,
        maxFiles: policy.uploadFilesPerDay,
        bytes: usage.uploadedBytes,
        maxBytes: policy.uploadBytesPerDay,
      },
      keptDays: {
        messages: policy.messageDays,
        media: policy.mediaDays,
        events: policy.eventDays,
        audit: policy.auditDays,
      },
      mediaUrlTtlSeconds: policy.mediaUrlTtlSeconds,
    };
  },
});
