import { AccessTokenProblem, openAccessToken } from '../../features/accounts/access-tokens.ts';
import { listWabas } from '../../features/accounts/accounts.ts';
import type { Config } from '../../platform/config/config.ts';
import type { SealedDatabase } from '../../platform/crypto/sealed-database.ts';
import type { SubscribedApp } from '../../platform/graph/graph-calls.ts';
import { type AccountClient, openAccountClient } from '../../platform/graph/graph-client.ts';
import { GraphError } from '../../platform/graph/graph-error.ts';
import { NEEDED_FIELDS } from '../../platform/upstream-fields.ts';
import { type Finding, fail, ok, unlessFine, warn } from './findings.ts';
import { MOST_ASKED_WABAS } from './limits.ts';

type Tools = SealedDatabase & { config: Config };

const WHERE = 'docs/operators/operations.md, at the platform';

/** What a WABA sends to: the apps that it has subscribed, and the secrets of the settings that may speak for it. */
type Subscribed = { wabaId: string; apps: SubscribedApp[]; secrets: readonly string[] };

/** The fields of an app; `not ours`: no secret of the settings is the app's. */
type Asked = { app: SubscribedApp; fields: string[] | null | 'not ours' };

/** Whether the apps that the WABAs send to subscribe to what is needed. WABAs whose token is refused are the business of another check. */
export async function lookAtFields({ config, ...tools }: Tools): Promise<Finding[]> {
  const wabas = (await listWabas(tools.database)).slice(0, MOST_ASKED_WABAS);
  if (wabas.length === 0) return [ok('there is no WABA yet')];
  const client = openAccountClient(config);
  try {
    const looked = await Promise.all(
      wabas.map(({ wabaId }) => subscribedOf(wabaId, { config, client, ...tools })),
    );
    const known = looked.filter((one) => one !== null);
    if (known.length === 0)
      return [warn('upstream names no app: it takes no access token', 'see the check "upstream" first')];
    const asked = await askApps(client, known);
    const foreign = known.filter(({ apps }) => !apps.some(({ id }) => asked.get(id)?.fields !== 'not ours'));
    return unlessFine(
      ok(`the apps of ${known.length} WABAs subscribe to the fields that are needed`),
      ...[...asked.values()].flatMap(findingsOf),
      ...foreign.map(({ wabaId, apps }) => unknownApp(wabaId, apps)),
    );
  } finally {
    await client.close();
  }
}

async function subscribedOf(
  wabaId: string,
  { config, client, ...tools }: Tools & { client: AccountClient },
): Promise<Subscribed | null> {
  try {
    const apps = await client.listSubscribedApps(wabaId, await openAccessToken(tools, wabaId));
    const secrets = config.upstream.appSecrets
      .filter(({ wabaIds }) => wabaIds === null || wabaIds.includes(wabaId))
      .map(({ secret }) => secret);
    return { wabaId, apps, secrets };
  } catch (error) {
    if (error instanceof GraphError || error instanceof AccessTokenProblem) return null;
    throw error;
  }
}

/** By id, each app that a secret of the settings may be of. */
async function askApps(client: AccountClient, known: readonly Subscribed[]): Promise<Map<string, Asked>> {
  const apps = Map.groupBy(
    known.flatMap(({ apps, secrets }) => apps.map((app) => ({ app, secrets }))),
    ({ app }) => app.id,
  );
  const asked = [...apps].map(async ([id, found]): Promise<[string, Asked][]> => {
    const [first] = found;
    if (first === undefined) return [];
    const secrets = new Set(found.flatMap((one) => one.secrets));
    return [[id, { app: first.app, fields: await fieldsOf(client, id, secrets) }]];
  });
  return new Map((await Promise.all(asked)).flat());
}

/** Upstream takes only the app's own secret: the others are of other apps. */
async function fieldsOf(
  client: AccountClient,
  appId: string,
  secrets: ReadonlySet<string>,
): Promise<Asked['fields']> {
  for (const secret of secrets) {
    try {
      return await client.listSubscribedFields(appId, secret);
    } catch (error) {
      if (!(error instanceof GraphError) || error.transient) throw error;
    }
  }
  return 'not ours';
}

function findingsOf({ app: { id, name }, fields }: Asked): Finding[] {
  const app = `the app ${name || id} (${id})`;
  if (fields === 'not ours') return [];
  if (fields === null)
    return [
      fail(`${app} has no active webhook of WhatsApp`, `set its callback URL and its fields: ${WHERE}`),
    ];
  return NEEDED_FIELDS.flatMap(({ fields: needed, without }) => {
    const missing = needed.filter((field) => !fields.includes(field));
    if (missing.length === 0) return [];
    const judge = missing.includes('messages') ? fail : warn;
    return [
      judge(
        `${app} does not subscribe to ${missing.join(', ')}: ${without}`,
        `subscribe to them in the app, under WhatsApp › Configuration › Webhook fields: ${WHERE}`,
      ),
    ];
  });
}

function unknownApp(wabaId: string, apps: readonly SubscribedApp[]): Finding {
  const names = apps.map(({ id, name }) => name || id).join(', ');
  return apps.length === 0
    ? fail(`WABA ${wabaId} has subscribed no app`, `subscribe it: ${WHERE}`)
    : warn(
        `WABA ${wabaId} has subscribed ${names}, and no app secret of the settings is of such an app`,
        'correct HELIOGRAPH_UPSTREAM_APP_SECRETS, or subscribe the app to the WABA',
      );
}
