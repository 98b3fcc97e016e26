import { isMembers } from '../../platform/json/json-members.ts';

/** Members of a content that are no text: upstream reads a text in their place as JSON. */
const JSON_MEMBERS: Readonly<Record<string, readonly string[]>> = {
  interactive: ['action', 'body', 'footer', 'header'],
  template: ['components', 'language'],
};

/**
 * The content of a message as upstream reads it: a member that is null is left out, and an object or list may be written
 * as a text of JSON. Chatwoot does both. What is no JSON stays a text, and is refused as such.
 */
export function asUpstreamReads(name: string, content: unknown): unknown {
  if (!isMembers(content)) return content;
  const jsonMembers = Object.hasOwn(JSON_MEMBERS, name) ? (JSON_MEMBERS[name] ?? []) : [];
  const members = Object.entries(content).filter(([, value]) => value !== null);
  return Object.fromEntries(
    members.map(([member, value]) => [member, jsonMembers.includes(member) ? parsed(value) : value]),
  );
}

function parsed(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
