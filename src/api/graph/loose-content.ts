import { isMembers } from '../../platform/json/json-members.ts';
import { hasMoreValues, MAX_VALUES } from '../../platform/json/json-values.ts';

/** Members of a content that are no text: upstream reads a text in their place as JSON. */
const JSON_MEMBERS: Readonly<Record<string, readonly string[]>> = {
  interactive: ['action', 'body', 'footer', 'header'],
  template: ['components', 'language'],
};

/** Members whose contents belong to the tenant's own flow, where null may mean something. */
const OF_THE_TENANT: ReadonlySet<string> = new Set(['data', 'flow_action_data']);

/**
 * A member of a message as upstream reads it: members that are null are left out, an object or list may be written as a text
 * of JSON, and a phone number as a number. Chatwoot does the first two.
 */
export function asUpstreamReads(name: string, value: unknown): unknown {
  if (name === 'to' && Number.isSafeInteger(value)) return String(value);
  if (!isMembers(value)) return withoutNulls(value);
  const jsonMembers = Object.hasOwn(JSON_MEMBERS, name) ? (JSON_MEMBERS[name] ?? []) : [];
  const members = Object.entries(value);
  return withoutNulls(
    Object.fromEntries(
      members.map(([member, inner]) => [member, jsonMembers.includes(member) ? parsed(inner) : inner]),
    ),
  );
}

/** At every depth; an entry of a list stays, as those behind it would move. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isMembers(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, inner]) => inner !== null)
      .map(([name, inner]) => [name, OF_THE_TENANT.has(name) ? inner : withoutNulls(inner)]),
  );
}

function parsed(value: unknown): unknown {
  if (typeof value !== 'string' || hasMoreValues(value, MAX_VALUES)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
