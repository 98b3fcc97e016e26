/** As upstream names them; `calls` is one of numbers only. */
export const ROUTING_ROLES = [
  'customer_service',
  'marketing',
  'utility',
  'ctwa',
  'ai_agent',
  'escalation',
  'calls',
] as const;

type RoutingRole = (typeof ROUTING_ROLES)[number];

/** What our app may do for a number that it shares with other responders. */
export type Routing = { roles: readonly RoutingRole[]; isStandby: boolean };

/** The routing of numbers; null: nobody else answers for the number, and nothing is refused. */
export type RoutingRegister = {
  of: (phoneNumberId: string) => Routing | null;
  set: (phoneNumberId: string, routing: Routing | null) => void;
  /** False for what another responder alone may do. */
  may: (phoneNumberId: string, role: RoutingRole) => boolean;
};

export function createRoutingRegister(): RoutingRegister {
  const byNumber = new Map<string, Routing>();
  const of = (phoneNumberId: string) => byNumber.get(phoneNumberId) ?? null;
  return {
    of,
    set: (phoneNumberId, routing) => {
      if (routing === null) byNumber.delete(phoneNumberId);
      else byNumber.set(phoneNumberId, routing);
    },
    may: (phoneNumberId, role) => of(phoneNumberId)?.roles.includes(role) ?? true,
  };
}
