import type { InboundRequest } from './inbound-request.ts';
import type { JsonObject } from './webhook-body.ts';

const DEFAULT_FLOW_ANSWER = JSON.stringify({
  flow_token: 'order-7781',
  rating: '4',
  comment: 'Great — thanks',
});

function buttonReply(request: InboundRequest): JsonObject {
  return { id: request.choiceId ?? 'confirm-button', title: request.title ?? 'Confirm' };
}

function listReply(request: InboundRequest): JsonObject {
  return {
    id: request.choiceId ?? 'priority_express',
    title: request.title ?? 'Priority Express',
    description: request.description ?? 'Next day to 2 days',
  };
}

function flowReply(request: InboundRequest): JsonObject {
  return {
    name: request.title ?? 'flow',
    body: request.body ?? 'Sent',
    response_json: request.responseJson ?? DEFAULT_FLOW_ANSWER,
  };
}

/** The `interactive` member: a tapped button, a chosen row, a finished flow, or an empty unknown kind. */
export function interactiveContent(request: InboundRequest): JsonObject {
  const kind = request.interactiveType ?? 'button_reply';
  switch (kind) {
    case 'button_reply':
      return { type: kind, button_reply: buttonReply(request) };
    case 'list_reply':
      return { type: kind, list_reply: listReply(request) };
    case 'nfm_reply':
      return { type: kind, nfm_reply: flowReply(request) };
    default:
      return { type: kind, [kind]: {} };
  }
}
