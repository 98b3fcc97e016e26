import type { EventType } from '../../platform/event-type.ts';
import type { Binding } from '../../platform/postgres/sql.ts';

export type DeliveryState = 'pending' | 'delivered' | 'failed' | 'dropped';

/** What an attempt was answered with: one code, a class such as 5 for 5xx, or the class of an error without answer. */
export type AttemptAnswer =
  | { kind: 'code'; code: number }
  | { kind: 'codeClass'; hundreds: number }
  | { kind: 'error'; errorClass: string };

/** Which deliveries to list; null means no restriction. Times are Unix time in ms, `untilMs` is exclusive. */
export type DeliveryFilter = {
  state: DeliveryState | null;
  eventType: EventType | null;
  endpointId: string | null;
  answer: AttemptAnswer | null;
  sinceMs: number | null;
  untilMs: number | null;
};

type Conditions = { text: string; bindings: Record<string, Binding> };

/** Conditions on a delivery `d` alone. */
export function deliveryConditions({ state, endpointId }: DeliveryFilter): Conditions {
  const conditions = ['true'];
  const bindings: Record<string, Binding> = {};
  if (state !== null) {
    conditions.push('d.state = :state');
    bindings.state = state;
  }
  if (endpointId !== null) {
    conditions.push('d.endpoint_id = cast(:endpointId as bigint)');
    bindings.endpointId = endpointId;
  }
  return { text: conditions.join(' and '), bindings };
}

/** The condition on an attempt `a`, or on whatever has its columns. */
export function answerCondition(answer: AttemptAnswer): Conditions {
  switch (answer.kind) {
    case 'code':
      return { text: 'a.status_code = cast(:code as integer)', bindings: { code: answer.code } };
    case 'codeClass':
      return {
        text: 'a.status_code between cast(:hundreds as integer) * 100 and cast(:hundreds as integer) * 100 + 99',
        bindings: { hundreds: answer.hundreds },
      };
    case 'error':
      return { text: 'a.error_class = :errorClass', bindings: { errorClass: answer.errorClass } };
  }
}

/** Whether an attempt with this answer has failed. */
export function isFailedAnswer(answer: AttemptAnswer): boolean {
  if (answer.kind === 'error') return true;
  return (answer.kind === 'code' ? Math.floor(answer.code / 100) : answer.hundreds) !== 2;
}

/**
 * The event of a delivery `d` as `ev`, when its type matters. A subquery of its own, so that each event is looked up
 * by its key: joined freely, the planner may read a whole day of events.
 */
export function eventOfType({ eventType }: DeliveryFilter): Conditions {
  if (eventType === null) return { text: '', bindings: {} };
  return {
    text: `cross join lateral (select 1 from events where day = d.event_day and id = d.event_uuid
             and event_type = :eventType offset 0) as ev`,
    bindings: { eventType },
  };
}
