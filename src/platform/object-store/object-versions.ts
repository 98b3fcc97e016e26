import type { Client } from 'minio';

/** Answers by which a store refuses, or says that it has no versions; others are failures that may pass. */
const REFUSALS = new Set([
  ...['AccessDenied', 'MethodNotAllowed', 'NotImplemented', 'InvalidRequest', 'ObjectLocked'],
  'VersioningNotConfigured',
]);

const NO_LIFECYCLE = 'NoSuchLifecycleConfiguration';

type Version = { name?: string; versionId?: string; isDeleteMarker?: boolean };

/**
 * Removes an object with all its versions. Returns how many versions stay because the store does not let them go. Where it
 * does not let them be listed, they count as one, unless the bucket never kept any.
 */
export async function removeVersions(client: Client, bucket: string, key: string): Promise<number> {
  await client.removeObject(bucket, key);
  try {
    let kept = 0;
    for (const version of await versionsOf(client, bucket, key))
      if (!(await isVersionRemoved(client, bucket, version))) kept += 1;
    return kept;
  } catch (error) {
    if (!isRefusal(error)) throw error;
    return (await readVersioning(client, bucket)) === 'off' ? 0 : 1;
  }
}

async function versionsOf(client: Client, bucket: string, key: string): Promise<Version[]> {
  const versions: Version[] = [];
  for await (const found of client.listObjects(bucket, key, true, { IncludeVersion: true })) {
    const version = found as Version;
    // The names of other objects may begin with this one's.
    if (version.name === key) versions.push(version);
  }
  return versions;
}

/** A delete marker that stays holds nothing. */
async function isVersionRemoved(
  client: Client,
  bucket: string,
  { name = '', versionId = 'null', isDeleteMarker = false }: Version,
): Promise<boolean> {
  try {
    await client.removeObject(bucket, name, { versionId });
    return true;
  } catch (error) {
    if (!isRefusal(error)) throw error;
    return isDeleteMarker;
  }
}

/** Whether a bucket keeps versions, or has kept some; `unknown`: the store does not say. */
export async function readVersioning(client: Client, bucket: string): Promise<'on' | 'off' | 'unknown'> {
  try {
    const { Status: status } = (await client.getBucketVersioning(bucket)) ?? {};
    return status === 'Enabled' || status === 'Suspended' ? 'on' : 'off';
  } catch (error) {
    if (!isRefusal(error)) throw error;
    return codeOf(error) === 'AccessDenied' ? 'unknown' : 'off';
  }
}

type Rule = {
  Status?: string;
  Prefix?: string;
  Filter?: { Prefix?: string; Tag?: unknown; And?: unknown };
  NoncurrentVersionExpiration?: object;
};

/** Whether a lifecycle rule removes noncurrent versions of all objects below a prefix; null: the store does not say. */
export async function expiresVersions(
  client: Client,
  bucket: string,
  prefix: string,
): Promise<boolean | null> {
  try {
    const found = (await client.getBucketLifecycle(bucket)) as { Rule?: Rule | Rule[] } | null;
    return [found?.Rule ?? []].flat().some((rule) => isOfAll(rule, prefix));
  } catch (error) {
    if (codeOf(error) === NO_LIFECYCLE) return false;
    if (!isRefusal(error)) throw error;
    return codeOf(error) === 'AccessDenied' ? null : false;
  }
}

function isOfAll(rule: Rule, prefix: string): boolean {
  const { Status: status, Filter: filter, NoncurrentVersionExpiration: expiration } = rule;
  if (status !== 'Enabled' || expiration === undefined) return false;
  if (filter?.Tag !== undefined || filter?.And !== undefined) return false;
  return prefix.startsWith(filter?.Prefix ?? rule.Prefix ?? '');
}

function isRefusal(error: unknown): boolean {
  return REFUSALS.has(codeOf(error));
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
