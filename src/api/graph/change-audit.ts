import type { FastifyRequest } from 'fastify';
import { DESTINATION_SET, recordChange } from '../../platform/audit/audit.ts';
import type { PassedCall } from '../../platform/graph/graph-pass.ts';
import { membersOf } from '../../platform/json/json-members.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { accountOf, apiActorOf } from '../keys/api-key-auth.ts';
import type { OwnObject } from './allowed-calls.ts';

export type PassedChange = Pick<PassedCall, 'method' | 'path' | 'query'> & { object: OwnObject };

/**
 * Writes down a change that was passed on; `status` is upstream's, null without a response. Of a body it names nothing but the
 * host that a flow sends to.
 */
export async function recordPassedChange(
  database: Database,
  request: FastifyRequest,
  { method, path: [id = '', ...edge], query, object }: PassedChange,
  status: number | null,
): Promise<void> {
  const { wabaId } = accountOf(request);
  const destination = status === null || status < 300 ? await destinationIn(request.body) : null;
  const name = query.get('name');
  await recordChange(database, apiActorOf(request), {
    wabaId,
    action: destination === null ? 'graph.changed' : DESTINATION_SET,
    target: `${object === 'waba' ? 'WABA' : object} ${id}`,
    detail: {
      method,
      edge: edge.join('/') || null,
      status,
      ...(name !== null && { name }),
      ...destination,
    },
  });
}

type Destination = { member: string; host: string | null };

/** Of flows of early versions, whose JSON says it. Escaped letters could hide the name. */
const IN_FLOW_JSON = /data_channel_uri|\\u00(?:5f|6[1-9a-f]|7[0-9a])/i;

async function destinationIn(body: unknown): Promise<Destination | null> {
  const entries: [string, unknown][] = body instanceof FormData ? [...body] : Object.entries(membersOf(body));
  for (const [name, value] of entries) {
    const member = name.toLowerCase();
    if (member === 'endpoint_uri') return { member, host: URL.parse(String(value))?.host || null };
    if (member === 'business_public_key') return { member, host: null };
    const sipHost = member === 'calling' ? sipHostIn(value) : null;
    if (sipHost !== null) return { member: 'calling.sip', host: sipHost };
    const flowJson = value instanceof File ? await value.text() : member === 'flow_json' ? textOf(value) : '';
    if (IN_FLOW_JSON.test(flowJson)) return { member: 'data_channel_uri', host: null };
  }
  return null;
}

/** The server of the tenant's to which upstream sends calls; empty: one without a name. */
function sipHostIn(calling: unknown): string | null {
  const { servers } = membersOf(membersOf(typeof calling === 'string' ? parsed(calling) : calling).sip);
  if (!Array.isArray(servers) || servers.length === 0) return null;
  const { hostname } = membersOf(servers[0]);
  return typeof hostname === 'string' ? hostname.slice(0, 253) : '';
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
