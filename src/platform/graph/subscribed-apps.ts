import { membersOf, textOf } from '../json/json-members.ts';
import { type GraphConnection, graphGet } from './graph-connection.ts';

/** An app that upstream sends the webhooks of a WABA to. */
export type SubscribedApp = { id: string; name: string; overrideCallbackUrl: string | null };

/** The apps that are subscribed to a WABA: `GET /{waba}/subscribed_apps`. Throws GraphError. */
export async function listSubscribedApps(
  connection: GraphConnection,
  wabaId: string,
  token: string,
): Promise<SubscribedApp[]> {
  const { data } = await graphGet(connection, { path: [wabaId, 'subscribed_apps'], query: {}, token });
  return Array.isArray(data) ? data.map(appOf) : [];
}

function appOf(value: unknown): SubscribedApp {
  const entry = membersOf(value);
  const app = membersOf(entry.whatsapp_business_api_data);
  return {
    id: textOf(app.id),
    name: textOf(app.name),
    overrideCallbackUrl: textOf(entry.override_callback_uri) || null,
  };
}
