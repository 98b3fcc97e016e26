# Made by `npm run client` from the OpenAPI document. Do not edit it.

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, Literal

from pydantic import TypeAdapter

from heliograph._async_core import AsyncCore
from heliograph._request import new_idempotency_key, parse_any, path_part, with_cursor
from . import models, requests

_START_REPLAY: TypeAdapter[models.ReplayCount | models.Replay] = TypeAdapter(models.ReplayCount | models.Replay)


class AsyncApi(AsyncCore):
    """A method for each operation of the API."""

    async def test_connection(self) -> models.TestConnectionResponse:
        """Whether the API can be reached.

        Needs no API key and looks at none. To test a key, ask `GET /me`.
        """
        return await self._call(models.TestConnectionResponse.model_validate_json, "GET", "/api/external/test")

    async def get_open_api_document(self) -> dict[str, Any]:
        """This document.

        The OpenAPI 3.1 description of the API. It changes with releases only; `ETag` saves asking twice.
        """
        return await self._call(parse_any, "GET", "/api/external/openapi.json")

    async def get_account_identity(self) -> models.AccountIdentity:
        """Get the account of the key.

        The tenant, the WABA, and the phone numbers that a request may name as `phoneNumberId`.

        Scope: any.
        """
        return await self._call(models.AccountIdentity.model_validate_json, "GET", "/me")

    async def get_usage(self) -> models.Usage:
        """Get usage and quotas.

        Of all WABAs of the business together. A `max…` of null: no quota. `stored` counts received and uploaded files; `uploadedToday` starts again at midnight UTC. `keptDays`: the days after which data is deleted; null: never. `mediaUrlTtlSeconds`: the seconds for which a `mediaUrl` is valid; null: it does not expire.

        Scope: any.
        """
        return await self._call(models.Usage.model_validate_json, "GET", "/api/external/usage")

    async def get_message_usage(self, *, from_: str | None = None, to: str | None = None, granularity: Literal["day", "month"] | None = None, group_by: str | None = None) -> models.MessageUsage:
        """Count messages by day.

        How many messages of the WABA were sent, delivered, read, failed and received on each UTC day, each counted once. They follow the statuses that upstream reports, with the time of the status; a later status implies the earlier ones. `billable`: delivered, and upstream charges for it. A group of null was not reported; received messages have no category and no pricing type. `cost` is the amount that upstream reports once a day, and null where it reports none: the service computes no amounts. Counts are complete up to `asOf`, and `isFinal` when no late statuses are expected. Erasing a customer changes no count. Days are kept for 14 months.

        Scope: `read`.
        """
        return await self._call(models.MessageUsage.model_validate_json, "GET", "/api/external/usage/messages", query={"from": from_, "to": to, "granularity": granularity, "groupBy": group_by})

    async def check_waba(self) -> models.WabaCheck:
        """Check the WABA.

        Follows a webhook from the upstream platform to your endpoints: access token, subscription of the app, phone numbers, activity, quarantined items, endpoints. Asks upstream with each request; a question without its response is `unknown`. `todo` is the advice for a `status` other than `up`. More checks can come.

        Scope: `read`.
        """
        return await self._call(models.WabaCheck.model_validate_json, "GET", "/api/external/waba-check")

    async def list_conversations(self, *, limit: int | None = None, cursor: str | None = None, order: Literal["asc", "desc"] | None = None, phone_number_id: str | None = None, customer: str | None = None, opted_out: bool | None = None, since: datetime | str | None = None) -> models.ConversationList:
        """List conversations.

        The most recently active first, each with the message that was sent or received last, and whether the customer service window is open. A scheduled message counts once it is sent.

        Scope: `read`.
        """
        return await self._call(models.ConversationList.model_validate_json, "GET", "/api/external/conversations", query={"limit": limit, "cursor": cursor, "order": order, "phoneNumberId": phone_number_id, "customer": customer, "optedOut": opted_out, "since": since})

    def iter_conversations(self, *, limit: int | None = None, cursor: str | None = None, order: Literal["asc", "desc"] | None = None, phone_number_id: str | None = None, customer: str | None = None, opted_out: bool | None = None, since: datetime | str | None = None) -> AsyncIterator[models.Conversation]:
        """The entries of all pages of `list_conversations`, which are asked for while you read."""
        return self._pages(lambda cursor: self.list_conversations(limit=limit, cursor=cursor, order=order, phone_number_id=phone_number_id, customer=customer, opted_out=opted_out, since=since), cursor)

    async def search_conversations(self, body: requests.ConversationSearch | None = None) -> models.ConversationList:
        """Search conversations.

        As `GET /api/external/conversations`, with the filters in the body: phone numbers do not belong in addresses, which stand in logs of proxies.

        Scope: `read`.
        """
        return await self._call(models.ConversationList.model_validate_json, "POST", "/api/external/conversations/search", body=body, is_safe=True)

    def iter_search_conversations(self, body: requests.ConversationSearch) -> AsyncIterator[models.Conversation]:
        """The entries of all pages of `search_conversations`, which are asked for while you read."""
        return self._pages(lambda cursor: self.search_conversations(with_cursor(body, cursor)), body.get("cursor"))

    async def get_conversation(self, id: str) -> models.ConversationDetails:
        """Get a conversation.

        With the message that was sent or received last, how many there are, and whether the customer service window is open.

        Scope: `read`.
        """
        return await self._call(models.ConversationDetails.model_validate_json, "GET", f"/api/external/conversations/{path_part(id)}")

    async def control_thread(self, id: str, body: requests.ControlThreadRequest) -> models.ControlledThread:
        """Take, pass or release a conversation.

        Of a number that several responders share. `take` is for the escalation partner only; `pass` gives the conversation to the escalation partner, who sees `metadata`; after `release` upstream chooses who receives the next message. Upstream is called once and never again: after `outcome_unknown` the owner is `unknown` until upstream reports one.

        Scope: `send`.
        """
        return await self._call(models.ControlledThread.model_validate_json, "POST", f"/api/external/conversations/{path_part(id)}/thread", body=body)

    async def list_conversation_messages(self, id: str, *, limit: int | None = None, cursor: str | None = None, order: Literal["asc", "desc"] | None = None, direction: Literal["inbound", "outbound"] | None = None, type: str | None = None, since: datetime | str | None = None, until: datetime | str | None = None) -> models.MessageList:
        """List the messages of a conversation.

        In both directions, the newest first. For the media of a message, ask until `mediaPending` is false: then `mediaUrl` is a link, or `mediaError` is present.

        Scope: `read`.
        """
        return await self._call(models.MessageList.model_validate_json, "GET", f"/api/external/conversations/{path_part(id)}/messages", query={"limit": limit, "cursor": cursor, "order": order, "direction": direction, "type": type, "since": since, "until": until})

    def iter_conversation_messages(self, id: str, *, limit: int | None = None, cursor: str | None = None, order: Literal["asc", "desc"] | None = None, direction: Literal["inbound", "outbound"] | None = None, type: str | None = None, since: datetime | str | None = None, until: datetime | str | None = None) -> AsyncIterator[models.Message]:
        """The entries of all pages of `list_conversation_messages`, which are asked for while you read."""
        return self._pages(lambda cursor: self.list_conversation_messages(id, limit=limit, cursor=cursor, order=order, direction=direction, type=type, since=since, until=until), cursor)

    async def get_message_media(self, id: str) -> models.MessageMedia:
        """Get the media of a message.

        Of an inbound message, or one of the WhatsApp Business app, also while they are pending. `mediaUrl` needs no API key.

        Scope: `read`.
        """
        return await self._call(models.MessageMedia.model_validate_json, "GET", f"/api/external/messages/{path_part(id)}/media")

    async def list_events(self, *, limit: int | None = None, cursor: str | None = None, order: Literal["asc", "desc"] | None = None, type: Literal["message", "status", "payment", "order", "media.ready", "test", "window.closing", "preference"] | str | None = None, event_id: str | None = None, phone_number_id: str | None = None, state: Literal["pending", "delivered", "failed", "dropped"] | None = None, since: datetime | str | None = None, until: datetime | str | None = None) -> models.EventList:
        """List events.

        The events for webhook endpoints, sent or pending, the newest first; `body` is the body of the webhook, byte for byte. With `order=asc` and the cursor of the last page a tenant that was down reads every event that it missed.

        Scope: `read` or `read_events`.
        """
        return await self._call(models.EventList.model_validate_json, "GET", "/api/external/events", query={"limit": limit, "cursor": cursor, "order": order, "type": type, "eventId": event_id, "phoneNumberId": phone_number_id, "state": state, "since": since, "until": until})

    def iter_events(self, *, limit: int | None = None, cursor: str | None = None, order: Literal["asc", "desc"] | None = None, type: Literal["message", "status", "payment", "order", "media.ready", "test", "window.closing", "preference"] | str | None = None, event_id: str | None = None, phone_number_id: str | None = None, state: Literal["pending", "delivered", "failed", "dropped"] | None = None, since: datetime | str | None = None, until: datetime | str | None = None) -> AsyncIterator[models.Event]:
        """The entries of all pages of `list_events`, which are asked for while you read."""
        return self._pages(lambda cursor: self.list_events(limit=limit, cursor=cursor, order=order, type=type, event_id=event_id, phone_number_id=phone_number_id, state=state, since=since, until=until), cursor)

    async def get_event(self, id: str) -> models.EventDetails:
        """Get an event.

        With its newest 50 deliveries and their newest 25 attempts each. Signatures and the values of custom headers are left out.

        Scope: `read` or `read_events`.
        """
        return await self._call(models.EventDetails.model_validate_json, "GET", f"/api/external/events/{path_part(id)}")

    async def replay_event(self, id: str, body: requests.ReplayEventRequest | None = None) -> models.Replay:
        """Send an event again.

        To every endpoint that had it or accepts such events now, or to the endpoint that the body names. The endpoint may be newer than the event if the key also has `read_events` or `read`.

        Scope: `manage_webhooks`.
        """
        return await self._call(models.Replay.model_validate_json, "POST", f"/api/external/events/{path_part(id)}/replay", body=body)

    async def start_replay(self, body: requests.ReplayRequest | None = None) -> models.ReplayCount | models.Replay:
        """Send many events again.

        Either `deliveryIds`, or a filter of at least one other member. `not_sent` in `states` selects events that an endpoint accepts now and never had; without `states` they are included. They are sent behind new events, with the same `webhook-id`. `dryRun` only counts. Events that are older than the URL of their endpoint require a key with `read_events` or `read` too.

        Scope: `manage_webhooks`.
        """
        return await self._call(_START_REPLAY.validate_json, "POST", "/api/external/replays", body=body)

    async def list_replays(self, *, limit: int | None = None, cursor: str | None = None) -> models.ReplayList:
        """List replays.

        The newest first.

        Scope: `read` or `manage_webhooks`.
        """
        return await self._call(models.ReplayList.model_validate_json, "GET", "/api/external/replays", query={"limit": limit, "cursor": cursor})

    def iter_replays(self, *, limit: int | None = None, cursor: str | None = None) -> AsyncIterator[models.Replay]:
        """The entries of all pages of `list_replays`, which are asked for while you read."""
        return self._pages(lambda cursor: self.list_replays(limit=limit, cursor=cursor), cursor)

    async def get_replay(self, id: str) -> models.ReplayDetails:
        """Get a replay.

        Progress and delivery outcomes.

        Scope: `read` or `manage_webhooks`.
        """
        return await self._call(models.ReplayDetails.model_validate_json, "GET", f"/api/external/replays/{path_part(id)}")

    async def pause_replay(self, id: str) -> models.ReplayDetails:
        """Pause a replay.

        Queues nothing more until it is resumed.

        Scope: `manage_webhooks`.
        """
        return await self._call(models.ReplayDetails.model_validate_json, "POST", f"/api/external/replays/{path_part(id)}/pause")

    async def resume_replay(self, id: str) -> models.ReplayDetails:
        """Resume a replay.

        Continues where it was paused.

        Scope: `manage_webhooks`.
        """
        return await self._call(models.ReplayDetails.model_validate_json, "POST", f"/api/external/replays/{path_part(id)}/resume")

    async def cancel_replay(self, id: str) -> models.ReplayDetails:
        """Cancel a replay.

        Queues nothing more, permanently. Queued deliveries are still sent.

        Scope: `manage_webhooks`.
        """
        return await self._call(models.ReplayDetails.model_validate_json, "POST", f"/api/external/replays/{path_part(id)}/cancel")

    async def list_webhook_endpoints(self, *, limit: int | None = None, cursor: str | None = None) -> models.WebhookEndpointList:
        """List webhook endpoints.

        The oldest first, each with its pending deliveries. Secrets and values of headers are never shown. A key without `manage_webhooks` gets the origins of URLs and hashes of the rest.

        Scope: `read` or `manage_webhooks`.
        """
        return await self._call(models.WebhookEndpointList.model_validate_json, "GET", "/api/external/webhook-endpoints", query={"limit": limit, "cursor": cursor})

    def iter_webhook_endpoints(self, *, limit: int | None = None, cursor: str | None = None) -> AsyncIterator[models.WebhookEndpoint]:
        """The entries of all pages of `list_webhook_endpoints`, which are asked for while you read."""
        return self._pages(lambda cursor: self.list_webhook_endpoints(limit=limit, cursor=cursor), cursor)

    async def create_webhook_endpoint(self, body: requests.NewWebhookEndpoint) -> models.CreatedWebhookEndpoint:
        """Add a webhook endpoint.

        Up to 100 in a WABA. `secret` is in this answer only. `sameUrlEndpointIds` names other endpoints with the same URL, which then receives each event once for each of them.

        Scope: `manage_webhooks`.
        """
        return await self._call(models.CreatedWebhookEndpoint.model_validate_json, "POST", "/api/external/webhook-endpoints", body=body)

    async def get_webhook_endpoint(self, id: str) -> models.WebhookEndpoint:
        """Get a webhook endpoint.

        With its pending deliveries. A key without `manage_webhooks` gets the origin of the URL and a hash of the rest.

        Scope: `read` or `manage_webhooks`.
        """
        return await self._call(models.WebhookEndpoint.model_validate_json, "GET", f"/api/external/webhook-endpoints/{path_part(id)}")

    async def update_webhook_endpoint(self, id: str, body: requests.WebhookEndpointChange | None = None) -> models.ChangedWebhookEndpoint:
        """Change a webhook endpoint.

        Changes the members that are given; null goes back to the default. When scheme, host or port of `url` change, `customHeaders` that are not given in the same request are forgotten, because their values were meant for the previous server: `droppedHeaderNames` names them. `secretRotationAdvised` is then true: the previous server still knows the signing secret. `sameUrlEndpointIds` names other endpoints with the same URL. `orderScope` changes only while no delivery is pending.

        Scope: `manage_webhooks`.
        """
        return await self._call(models.ChangedWebhookEndpoint.model_validate_json, "PATCH", f"/api/external/webhook-endpoints/{path_part(id)}", body=body)

    async def delete_webhook_endpoint(self, id: str) -> models.DeleteWebhookEndpointResponse:
        """Delete a webhook endpoint.

        Its pending deliveries are dropped; the log stays.

        Scope: `manage_webhooks`.
        """
        return await self._call(models.DeleteWebhookEndpointResponse.model_validate_json, "DELETE", f"/api/external/webhook-endpoints/{path_part(id)}")

    async def pause_webhook_endpoint(self, id: str, body: requests.PauseWebhookEndpointRequest | None = None) -> models.WebhookEndpoint:
        """Pause a webhook endpoint.

        Events wait until it is enabled.

        Scope: `manage_webhooks`.
        """
        return await self._call(models.WebhookEndpoint.model_validate_json, "POST", f"/api/external/webhook-endpoints/{path_part(id)}/pause", body=body)

    async def enable_webhook_endpoint(self, id: str, body: requests.EnableWebhookEndpointRequest | None = None) -> models.EnableWebhookEndpointResponse:
        """Enable a webhook endpoint.

        Enables the endpoint. If deliveries are pending, `waiting` is required: send or drop them.

        Scope: `manage_webhooks`.
        """
        return await self._call(models.EnableWebhookEndpointResponse.model_validate_json, "POST", f"/api/external/webhook-endpoints/{path_part(id)}/enable", body=body)

    async def rotate_webhook_endpoint_secret(self, id: str, body: requests.RotateWebhookEndpointSecretRequest | None = None) -> models.RotatedSecret:
        """Rotate the secret of a webhook endpoint.

        `secret` is in this answer only. The old secret signs too for `overlapHours`, 24 unless given. You may bring the new `secret`.

        Scope: `manage_webhooks`.
        """
        return await self._call(models.RotatedSecret.model_validate_json, "POST", f"/api/external/webhook-endpoints/{path_part(id)}/rotate-secret", body=body)

    async def rotate_webhook_endpoint_signing_key(self, id: str, body: requests.RotateWebhookEndpointSigningKeyRequest | None = None) -> models.RotatedSigningKey:
        """Rotate the signing key of a webhook endpoint.

        For an endpoint with `asymmetricSignature`: `publicKey` verifies the signatures of the new private key. The old key signs too for `overlapHours`, 24 unless given.

        Scope: `manage_webhooks`.
        """
        return await self._call(models.RotatedSigningKey.model_validate_json, "POST", f"/api/external/webhook-endpoints/{path_part(id)}/rotate-signing-key", body=body)

    async def test_webhook_endpoint(self, id: str, body: requests.TestRequest | None = None) -> models.TestOutcome:
        """Send a test event.

        To this endpoint only, once, even if it is paused. Waits up to 8 seconds for the outcome. With `sample`, an event of another type with made-up contents is sent as such events are: with retries, and when the endpoint is enabled.

        Scope: `manage_webhooks`.
        """
        return await self._call(models.TestOutcome.model_validate_json, "POST", f"/api/external/webhook-endpoints/{path_part(id)}/test", body=body)

    async def get_webhook_endpoint_statistics(self, id: str, *, interval: Literal["minute", "hour"] | None = None, since: datetime | str | None = None, until: datetime | str | None = None) -> models.WebhookEndpointStatistics:
        """Get the statistics of a webhook endpoint.

        Attempts per minute or hour, 1,440 steps at most, the pending deliveries, and how many of the last had a workflow run. Test events do not count.

        Scope: `read` or `manage_webhooks`.
        """
        return await self._call(models.WebhookEndpointStatistics.model_validate_json, "GET", f"/api/external/webhook-endpoints/{path_part(id)}/statistics", query={"interval": interval, "since": since, "until": until})

    async def get_operations_url(self) -> models.OperationsUrl:
        """Get the URL for alerts.

        Null when alerts are not sent. A key without `manage_webhooks` gets the origin and a hash of the rest.

        Scope: `read` or `manage_webhooks`.
        """
        return await self._call(models.OperationsUrl.model_validate_json, "GET", "/api/external/operations-url")

    async def delete_operations_url(self) -> models.OperationsUrl:
        """Remove the URL for alerts.

        Alerts are not sent; they are still listed.

        Scope: `manage_webhooks`.
        """
        return await self._call(models.OperationsUrl.model_validate_json, "DELETE", "/api/external/operations-url")

    async def set_operations_url(self, body: requests.SetOperationsUrlRequest) -> models.SavedOperationsUrl:
        """Set the URL for alerts.

        `secret` is in the first answer only; later changes of the URL keep it and answer null. `secretRotationAdvised`: the URL leads to another server, and the previous server still knows the secret.

        Scope: `manage_webhooks`.
        """
        return await self._call(models.SavedOperationsUrl.model_validate_json, "PUT", "/api/external/operations-url", body=body)

    async def rotate_operations_url_secret(self) -> models.SavedOperationsUrl:
        """Make a new secret for alerts.

        The old secret ends at once; the new secret is in this answer only.

        Scope: `manage_webhooks`.
        """
        return await self._call(models.SavedOperationsUrl.model_validate_json, "POST", "/api/external/operations-url/rotate-secret")

    async def list_endpoint_alerts(self, *, limit: int | None = None, cursor: str | None = None) -> models.EndpointAlertList:
        """List alerts about endpoints.

        The newest first, also those that were sent nowhere. `alert` is `endpoint.failing`, `endpoint.disabled`, `endpoint.recovered` or `endpoint.deliveries_failed`; more can come.

        Scope: `read` or `manage_webhooks`.
        """
        return await self._call(models.EndpointAlertList.model_validate_json, "GET", "/api/external/endpoint-alerts", query={"limit": limit, "cursor": cursor})

    def iter_endpoint_alerts(self, *, limit: int | None = None, cursor: str | None = None) -> AsyncIterator[models.EndpointAlert]:
        """The entries of all pages of `list_endpoint_alerts`, which are asked for while you read."""
        return self._pages(lambda cursor: self.list_endpoint_alerts(limit=limit, cursor=cursor), cursor)

    async def retry_delivery(self, id: str) -> models.RetriedDelivery:
        """Retry a delivery now.

        Makes the next attempt now instead of at its time; it counts as that attempt. Those behind it in its ordering key follow in their order. While the endpoint is probed, its next probe goes out now. `retried` is false when the delivery was due already.

        Scope: `manage_webhooks`.
        """
        return await self._call(models.RetriedDelivery.model_validate_json, "POST", f"/api/external/deliveries/{path_part(id)}/retry")

    async def drop_delivery(self, id: str) -> models.DroppedDelivery:
        """Drop a delivery.

        It is not sent and stays in the log, and the next event of its ordering key is sent. A replay can send it. Dropping it again changes nothing.

        Scope: `manage_webhooks`.
        """
        return await self._call(models.DroppedDelivery.model_validate_json, "POST", f"/api/external/deliveries/{path_part(id)}/drop")

    async def retry_webhook_endpoint(self, id: str) -> models.RetriedWebhookEndpoint:
        """Retry a webhook endpoint now.

        Makes the next attempt of every delivery that waits for a retry now, as fast as the limits of the endpoint allow and in order. While the endpoint is probed, its next probe goes out now (`probed`). If `more` is true, ask again for the rest.

        Scope: `manage_webhooks`.
        """
        return await self._call(models.RetriedWebhookEndpoint.model_validate_json, "POST", f"/api/external/webhook-endpoints/{path_part(id)}/retry")

    async def get_own_key(self) -> models.ApiKey:
        """Get the key of this request.

        The name, scopes and times of the API key that the request carries; never the key itself.

        Scope: any.
        """
        return await self._call(models.ApiKey.model_validate_json, "GET", "/api/external/key")

    async def get_message(self, id: str) -> models.MessageDetails:
        """Get a message.

        Inbound or outbound, with its state and each status that upstream reported.

        Scope: `read`.
        """
        return await self._call(models.MessageDetails.model_validate_json, "GET", f"/api/external/messages/{path_part(id)}")

    async def move_scheduled_message(self, id: str, body: requests.MessageMove) -> models.ScheduledMessage:
        """Move a scheduled message.

        To another time, 30 seconds to 35 days ahead. Without `notAfter` a former one keeps its distance to `sendAt`. Once its sending has begun, or it has failed or was cancelled: 409 `message_not_scheduled`.

        Scope: `send`.
        """
        return await self._call(models.ScheduledMessage.model_validate_json, "PATCH", f"/api/external/messages/{path_part(id)}", body=body)

    async def send_message(self, body: requests.MessageToSend, *, idempotency_key: str | None = None) -> models.SentMessage:
        """Send a message.

        The body is the upstream platform’s own message object with `phoneNumberId` in front, and `to` or `recipient`; with both, upstream uses `to`. The response waits up to about 10 seconds for upstream. With `sendAt` it is sent at that time and the response comes at once. Upstream checks its own limits. A type or a member that the service does not know is passed on, with an entry in `warnings`: also one next to the content, such as `category` of Direct Send.

        Scope: `send`.
        """
        return await self._call(models.SentMessage.model_validate_json, "POST", "/api/external/messages", body=body, idempotency_key=idempotency_key or new_idempotency_key())

    async def list_scheduled_messages(self, *, limit: int | None = None, cursor: str | None = None, state: Literal["scheduled"] | None = None, phone_number_id: str | None = None) -> models.ScheduledMessageList:
        """List scheduled messages.

        Messages with `sendAt` whose sending has not begun, the next one first. Sent ones are in their conversations.

        Scope: `read`.
        """
        return await self._call(models.ScheduledMessageList.model_validate_json, "GET", "/api/external/messages", query={"limit": limit, "cursor": cursor, "state": state, "phoneNumberId": phone_number_id})

    def iter_scheduled_messages(self, *, limit: int | None = None, cursor: str | None = None, state: Literal["scheduled"] | None = None, phone_number_id: str | None = None) -> AsyncIterator[models.ScheduledMessage]:
        """The entries of all pages of `list_scheduled_messages`, which are asked for while you read."""
        return self._pages(lambda cursor: self.list_scheduled_messages(limit=limit, cursor=cursor, state=state, phone_number_id=phone_number_id), cursor)

    async def cancel_scheduled_message(self, id: str) -> models.ScheduledMessage:
        """Cancel a scheduled message.

        It is not sent, and gives no `status` event. Once its sending has begun, or it has failed or was cancelled: 409 `message_not_scheduled`.

        Scope: `send`.
        """
        return await self._call(models.ScheduledMessage.model_validate_json, "POST", f"/api/external/messages/{path_part(id)}/cancel")

    async def create_broadcast(self, body: requests.NewBroadcast) -> models.BroadcastDetails:
        """Create a broadcast.

        A draft of one template to many customers. Add its recipients, then start it. A key with limits on its messages cannot create or start one.

        Scope: `send`.
        """
        return await self._call(models.BroadcastDetails.model_validate_json, "POST", "/api/external/broadcasts", body=body)

    async def list_broadcasts(self, *, limit: int | None = None, cursor: str | None = None) -> models.BroadcastList:
        """List broadcasts.

        The newest first.

        Scope: `read`.
        """
        return await self._call(models.BroadcastList.model_validate_json, "GET", "/api/external/broadcasts", query={"limit": limit, "cursor": cursor})

    def iter_broadcasts(self, *, limit: int | None = None, cursor: str | None = None) -> AsyncIterator[models.Broadcast]:
        """The entries of all pages of `list_broadcasts`, which are asked for while you read."""
        return self._pages(lambda cursor: self.list_broadcasts(limit=limit, cursor=cursor), cursor)

    async def add_broadcast_recipients(self, id: str, body: requests.NewRecipients) -> models.AddedRecipients:
        """Add recipients to a broadcast.

        Up to 1,000 in a body of up to 256 KiB, and 100,000 in all. Each line has its result: a recipient that the broadcast has is a `duplicate` and stays as it was, so a request may be repeated; an `invalid` line names its member and adds nothing. After the start: 409 `broadcast_started`.

        Scope: `send`.
        """
        return await self._call(models.AddedRecipients.model_validate_json, "POST", f"/api/external/broadcasts/{path_part(id)}/recipients", body=body)

    async def list_broadcast_recipients(self, id: str, *, limit: int | None = None, cursor: str | None = None, state: Literal["pending", "queued", "suppressed", "accepted", "delivered", "read", "failed", "unknown", "cancelled"] | None = None) -> models.BroadcastRecipientList:
        """List the recipients of a broadcast.

        In the order in which they were added, with how far the message of each is. `errorCode` of a failed one is upstream’s code, or the service’s own. A page looks at 5,000 recipients at most: with `state` it may hold few or none although `hasMore` is true.

        Scope: `read`.
        """
        return await self._call(models.BroadcastRecipientList.model_validate_json, "GET", f"/api/external/broadcasts/{path_part(id)}/recipients", query={"limit": limit, "cursor": cursor, "state": state})

    def iter_broadcast_recipients(self, id: str, *, limit: int | None = None, cursor: str | None = None, state: Literal["pending", "queued", "suppressed", "accepted", "delivered", "read", "failed", "unknown", "cancelled"] | None = None) -> AsyncIterator[models.BroadcastRecipient]:
        """The entries of all pages of `list_broadcast_recipients`, which are asked for while you read."""
        return self._pages(lambda cursor: self.list_broadcast_recipients(id, limit=limit, cursor=cursor, state=state), cursor)

    async def start_broadcast(self, id: str) -> models.BroadcastDetails:
        """Start a broadcast.

        From here on it cannot be changed. Each recipient gets one message. Broadcasts and scheduled messages of a number together take at most 70 % of its pace. It pauses itself when upstream stops the number (131048), the country (130497) or the template (132015), when the account is restricted, when the access token is refused, and when more than 40 of its last 200 messages failed; an alert says why. At most 5 run or are paused.

        Scope: `send`.
        """
        return await self._call(models.BroadcastDetails.model_validate_json, "POST", f"/api/external/broadcasts/{path_part(id)}/start")

    async def get_broadcast(self, id: str) -> models.BroadcastDetails:
        """Get a broadcast.

        Counts of recipients by how far their messages are. `erased` are those whose customers or messages were erased since. Of a broadcast with more than 2,000 recipients the counts may be some seconds old: up to 20 times as old as the counting takes. A start, a pause or a cancellation shows at once.

        Scope: `read`.
        """
        return await self._call(models.BroadcastDetails.model_validate_json, "GET", f"/api/external/broadcasts/{path_part(id)}")

    async def pause_broadcast(self, id: str) -> models.BroadcastDetails:
        """Pause a broadcast.

        Messages whose sending has not begun wait until it is resumed.

        Scope: `send`.
        """
        return await self._call(models.BroadcastDetails.model_validate_json, "POST", f"/api/external/broadcasts/{path_part(id)}/pause")

    async def resume_broadcast(self, id: str) -> models.BroadcastDetails:
        """Resume a broadcast.

        Continues where it was paused. Failures before this moment do not pause it again. Failed recipients stay failed.

        Scope: `send`.
        """
        return await self._call(models.BroadcastDetails.model_validate_json, "POST", f"/api/external/broadcasts/{path_part(id)}/resume")

    async def cancel_broadcast(self, id: str) -> models.BroadcastDetails:
        """Cancel a broadcast.

        Ends it permanently. Messages whose sending has not begun are not sent, and give no `status` event.

        Scope: `send`.
        """
        return await self._call(models.BroadcastDetails.model_validate_json, "POST", f"/api/external/broadcasts/{path_part(id)}/cancel")

    async def mark_message_read(self, id: str, body: requests.MarkMessageReadRequest | None = None) -> models.MarkMessageReadResponse:
        """Mark a message as read.

        Shows the customer that an inbound message was read. Upstream also marks earlier messages, but `readAt` is of the named message only. With `typingIndicator` the customer sees for up to 25 seconds, or until the next message, that an answer is being written. Calling it again is harmless. Upstream accepts messages of the last 30 days.

        Scope: `send`.
        """
        return await self._call(models.MarkMessageReadResponse.model_validate_json, "POST", f"/api/external/messages/{path_part(id)}/read", body=body)

    async def get_media(self, id: str) -> models.UploadedMedia:
        """Get an uploaded file.

        The description of a file. An expired file returns 404, as an unknown one does.

        Scope: `read`.
        """
        return await self._call(models.UploadedMedia.model_validate_json, "GET", f"/api/external/media/{path_part(id)}")

    async def delete_media(self, id: str) -> models.DeleteMediaResponse:
        """Delete an uploaded file.

        Messages can no longer name it. A pending message that names it may fail, even if upstream has the file already: delete a file when the messages that name it are sent.

        Scope: `send`.
        """
        return await self._call(models.DeleteMediaResponse.model_validate_json, "DELETE", f"/api/external/media/{path_part(id)}")

    async def list_templates(self, *, limit: int | None = None, cursor: str | None = None, name: str | None = None, status: str | None = None, category: str | None = None, language: str | None = None) -> models.ListTemplatesResponse:
        """List message templates.

        Asks the upstream platform for the templates of the WABA with each request. `components` and further members stand as upstream wrote them; the names of the members of a template are in camelCase.

        Scope: `read`.
        """
        return await self._call(models.ListTemplatesResponse.model_validate_json, "GET", "/api/external/templates", query={"limit": limit, "cursor": cursor, "name": name, "status": status, "category": category, "language": language})

    def iter_templates(self, *, limit: int | None = None, cursor: str | None = None, name: str | None = None, status: str | None = None, category: str | None = None, language: str | None = None) -> AsyncIterator[models.ListTemplatesResponseDataItem]:
        """The entries of all pages of `list_templates`, which are asked for while you read."""
        return self._pages(lambda cursor: self.list_templates(limit=limit, cursor=cursor, name=name, status=status, category=category, language=language), cursor)

    async def list_message_templates(self, *, limit: int | None = None, cursor: str | None = None, name: str | None = None, status: str | None = None, category: str | None = None, language: str | None = None, refresh: Literal["true", "false"] | None = None) -> models.MessageTemplateList:
        """List the copy of the message templates.

        The templates of the WABA as the service knows them, by name and language: copied from upstream once a day, and kept up to date by its reports. `refresh` copies them now. `GET /api/external/templates` asks upstream with each request.

        Scope: `read`.
        """
        return await self._call(models.MessageTemplateList.model_validate_json, "GET", "/api/external/message-templates", query={"limit": limit, "cursor": cursor, "name": name, "status": status, "category": category, "language": language, "refresh": refresh})

    def iter_message_templates(self, *, limit: int | None = None, cursor: str | None = None, name: str | None = None, status: str | None = None, category: str | None = None, language: str | None = None, refresh: Literal["true", "false"] | None = None) -> AsyncIterator[models.MessageTemplate]:
        """The entries of all pages of `list_message_templates`, which are asked for while you read."""
        return self._pages(lambda cursor: self.list_message_templates(limit=limit, cursor=cursor, name=name, status=status, category=category, language=language, refresh=refresh), cursor)

    async def get_payment(self, reference_id: str, *, phone_number_id: str | None = None, refresh: Literal["true", "false"] | None = None, payment_configuration: str | None = None) -> models.GetPaymentResponse:
        """Get a payment.

        The state of the payment that an `order_details` message asked for, from the `payment` events of the WABA: the report with the latest upstream date counts. `transactions` and `refunds` contain the latest report of each, the newest first, as upstream wrote them. Without a report `status` is null. Webhooks alone are no proof of a payment: with `refresh=true` upstream is asked, and `upstream.payments` contains its response; the events stay unchanged.

        Scope: `read`.
        """
        return await self._call(models.GetPaymentResponse.model_validate_json, "GET", f"/api/external/payments/{path_part(reference_id)}", query={"phoneNumberId": phone_number_id, "refresh": refresh, "paymentConfiguration": payment_configuration})

    async def add_opt_out(self, body: requests.NewOptOut) -> models.OptOut:
        """Note that a customer wants no messages.

        With the scope `marketing` their marketing templates are refused with 422 `recipient_opted_out`; with `all` every message outside the customer service window too. A customer has one of the tenant’s own per number, and one for all numbers: a repeated request changes its scope and reason. The customer need not be known.

        Scope: `send`.
        """
        return await self._call(models.OptOut.model_validate_json, "POST", "/api/external/opt-outs", body=body)

    async def search_opt_outs(self, body: requests.OptOutSearch | None = None) -> models.OptOutList:
        """Search opt-outs.

        Customers who want no messages of some kind, the newest opt-out first. One that was kept for an erased customer is found by a phone number or user id of theirs alone, and names nobody.

        Scope: `read`.
        """
        return await self._call(models.OptOutList.model_validate_json, "POST", "/api/external/opt-outs/search", body=body)

    def iter_search_opt_outs(self, body: requests.OptOutSearch) -> AsyncIterator[models.OptOut]:
        """The entries of all pages of `search_opt_outs`, which are asked for while you read."""
        return self._pages(lambda cursor: self.search_opt_outs(with_cursor(body, cursor)), body.get("cursor"))

    async def end_opt_out(self, body: requests.OptOutEnd) -> models.EndOptOutResponse:
        """End the opt-out of a customer.

        Ends the opt-outs that the API or the portal noted, for one number or all, and writes the evidence into the audit log. One that upstream reported ends only when the customer resumes in WhatsApp: where no other is left, the request returns 409 `opt_out_of_upstream`. The response lists those that still hold.

        Scope: `send`.
        """
        return await self._call(models.EndOptOutResponse.model_validate_json, "POST", "/api/external/opt-outs/end", body=body)

    async def get_opt_out_words(self) -> models.OptOutWords:
        """Get the words by which customers opt out.

        None unless the tenant has set some.

        Scope: `read`.
        """
        return await self._call(models.OptOutWords.model_validate_json, "GET", "/api/external/opt-outs/words")

    async def set_opt_out_words(self, body: requests.NewOptOutWords | None = None) -> models.OptOutWords:
        """Set the words by which customers opt out.

        A customer who writes one of `optOutWords` and nothing else, or presses a button with that text, gets no marketing of that number any more; one of `optInWords` ends that. Spaces around the word do not matter, nor do large and small letters. Messages count from then on.

        Scope: `send`.
        """
        return await self._call(models.OptOutWords.model_validate_json, "PUT", "/api/external/opt-outs/words", body=body)

    async def request_erasure(self, body: requests.ErasureRequest | None = None) -> models.Erasure:
        """Erase a customer or a conversation.

        Permanently: messages, files, events and their deliveries, and the data of the customer. Name either `customer` or `conversationId`. Messages that the customer writes afterwards are accepted as from a new customer. While an erasure of the same subject is open, that one is returned.

        Scope: `erase`.
        """
        return await self._call(models.Erasure.model_validate_json, "POST", "/api/external/erasures", body=body)

    async def list_erasures(self, *, limit: int | None = None, cursor: str | None = None) -> models.ErasureList:
        """List erasures.

        The newest first.

        Scope: `erase`.
        """
        return await self._call(models.ErasureList.model_validate_json, "GET", "/api/external/erasures", query={"limit": limit, "cursor": cursor})

    def iter_erasures(self, *, limit: int | None = None, cursor: str | None = None) -> AsyncIterator[models.Erasure]:
        """The entries of all pages of `list_erasures`, which are asked for while you read."""
        return self._pages(lambda cursor: self.list_erasures(limit=limit, cursor=cursor), cursor)

    async def get_erasure(self, id: str) -> models.Erasure:
        """Get an erasure.

        Its progress; once it is done, with the signed report.

        Scope: `erase`.
        """
        return await self._call(models.Erasure.model_validate_json, "GET", f"/api/external/erasures/{path_part(id)}")
