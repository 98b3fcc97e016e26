import { defineSearchAttributeKey, SearchAttributeType, TypedSearchAttributes } from '@temporalio/common';

/** Search attributes by which operators filter workflows; registered at start (registerSearchAttributes). */
const KEYS = {
  tenantId: defineSearchAttributeKey('HeliographTenantId', SearchAttributeType.KEYWORD),
  wabaId: defineSearchAttributeKey('HeliographWabaId', SearchAttributeType.KEYWORD),
  endpointId: defineSearchAttributeKey('HeliographEndpointId', SearchAttributeType.KEYWORD),
  eventId: defineSearchAttributeKey('HeliographEventId', SearchAttributeType.KEYWORD),
  eventType: defineSearchAttributeKey('HeliographEventType', SearchAttributeType.KEYWORD),
};

export const SEARCH_ATTRIBUTE_NAMES: readonly string[] = Object.values(KEYS).map((key) => key.name);

/** Keyword values are cut by some stores; eventIds beyond this length are found by `admin find` only. */
const MAX_VALUE_CHARS = 255;

/** The search attributes of a workflow; absent members are left out. */
export function searchAttributes(
  values: Partial<Record<keyof typeof KEYS, string | null>>,
): TypedSearchAttributes {
  const pairs = Object.entries(KEYS).flatMap(([name, key]) => {
    const value = values[name as keyof typeof KEYS];
    return value === undefined || value === null ? [] : [{ key, value: value.slice(0, MAX_VALUE_CHARS) }];
  });
  return new TypedSearchAttributes(pairs);
}
