# Made by `npm run client` from the OpenAPI document. Do not edit it.
"""What responses and webhooks have."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypeAlias

from pydantic import Field

from heliograph._model import Model


class AccountIdentity(Model):
    user_id: int = Field(alias="userId")
    waba_id: str = Field(alias="wabaId")
    business_name: str = Field(alias="businessName")
    phone_numbers: list[AccountIdentityPhoneNumbersItem] = Field(alias="phoneNumbers")


class AccountIdentityPhoneNumbersItem(Model):
    phone_number_id: str = Field(alias="phoneNumberId")
    display_phone_number: str = Field(alias="displayPhoneNumber")
    verified_name: str = Field(alias="verifiedName")
    quality_rating: str | None = Field(default=None, alias="qualityRating")


class AddedRecipients(Model):
    added: int
    duplicate: int
    invalid: int
    lines: list[AddedRecipientsLinesItem]


class AddedRecipientsLinesItem(Model):
    result: Literal["added", "duplicate", "invalid"] | str
    param: str | None = Field(default=None)
    message: str | None = Field(default=None)


class ApiKey(Model):
    id: str
    prefix: str
    last_four: str = Field(alias="lastFour")
    name: str
    waba_id: str = Field(alias="wabaId")
    scopes: list[Literal["read", "read_events", "send", "manage_webhooks", "export", "erase", "graph", "graph_manage", "graph_query"] | str]
    created_at: datetime = Field(alias="createdAt")
    expires_at: datetime | None = Field(alias="expiresAt")
    last_used_at: datetime | None = Field(alias="lastUsedAt")


class Broadcast(Model):
    id: str
    name: str
    phone_number_id: str = Field(alias="phoneNumberId")
    template: dict[str, Any]
    state: Literal["draft", "scheduled", "running", "paused", "done", "cancelled"] | str
    paused_because: str | None = Field(alias="pausedBecause")
    recipients: int
    pending: int
    send_at: datetime | None = Field(alias="sendAt")
    requested_by: str = Field(alias="requestedBy")
    created_at: datetime = Field(alias="createdAt")
    started_at: datetime | None = Field(alias="startedAt")
    finished_at: datetime | None = Field(alias="finishedAt")


class BroadcastDetails(Model):
    id: str
    name: str
    phone_number_id: str = Field(alias="phoneNumberId")
    template: dict[str, Any]
    state: Literal["draft", "scheduled", "running", "paused", "done", "cancelled"] | str
    paused_because: str | None = Field(alias="pausedBecause")
    recipients: int
    pending: int
    send_at: datetime | None = Field(alias="sendAt")
    requested_by: str = Field(alias="requestedBy")
    created_at: datetime = Field(alias="createdAt")
    started_at: datetime | None = Field(alias="startedAt")
    finished_at: datetime | None = Field(alias="finishedAt")
    counts: BroadcastDetailsCounts


class BroadcastDetailsCounts(Model):
    pending: int
    queued: int
    suppressed: int
    accepted: int
    delivered: int
    read: int
    failed: int
    unknown: int
    cancelled: int
    erased: int
    failed_by_code: dict[str, int] = Field(alias="failedByCode")


class BroadcastList(Model):
    data: list[Broadcast]
    has_more: bool = Field(alias="hasMore")
    next_cursor: str | None = Field(alias="nextCursor")


class BroadcastRecipient(Model):
    to: str
    ref: str | None
    state: Literal["pending", "queued", "suppressed", "accepted", "delivered", "read", "failed", "unknown", "cancelled"] | str
    service_message_id: str | None = Field(alias="serviceMessageId")
    error_code: str | None = Field(alias="errorCode")


class BroadcastRecipientList(Model):
    data: list[BroadcastRecipient]
    has_more: bool = Field(alias="hasMore")
    next_cursor: str | None = Field(alias="nextCursor")


class ChangedWebhookEndpoint(Model):
    id: str
    url: str
    description: str
    event_types: list[Literal["message", "status", "payment", "order", "media.ready", "test", "window.closing", "preference"] | str] | None = Field(alias="eventTypes")
    phone_number_ids: list[str] | None = Field(alias="phoneNumberIds")
    filter: list[str] | None
    format: Literal["heliograph", "meta"] | str
    """`meta`: the body is the webhook body of the upstream platform, signed in `X-Hub-Signature-256` with the app secret, for software that speaks its API. Types without such a form (`order`, `media.ready`) are not sent."""
    window_closing_minutes: int | None = Field(alias="windowClosingMinutes")
    custom_header_names: list[str] | None = Field(alias="customHeaderNames")
    retry_schedule_seconds: list[int] | None = Field(alias="retryScheduleSeconds")
    timeout_ms: int | None = Field(alias="timeoutMs")
    asymmetric_signature: Literal["none", "ed25519"] | str = Field(alias="asymmetricSignature")
    max_in_flight: int | None = Field(alias="maxInFlight")
    rate_limit_per_second: int | None = Field(alias="rateLimitPerSecond")
    block_limit_seconds: int | None = Field(alias="blockLimitSeconds")
    delivery_workflows: Literal["auto", "always"] | str | None = Field(alias="deliveryWorkflows")
    always_workflows_for: list[Literal["message", "status", "payment", "order", "media.ready", "test", "window.closing", "preference"] | str] | None = Field(alias="alwaysWorkflowsFor")
    order_scope: Literal["event", "conversation", "endpoint"] | str = Field(alias="orderScope")
    buffer_seconds: int | None = Field(alias="bufferSeconds")
    buffer_max_seconds: int | None = Field(alias="bufferMaxSeconds")
    buffer_max_messages: int | None = Field(alias="bufferMaxMessages")
    buffer_types: list[Literal["text", "image", "video", "audio", "document", "sticker", "location", "contacts", "button", "interactive", "reaction"] | str] | None = Field(alias="bufferTypes")
    mode: Literal["open", "probing", "paused", "disabled"] | str
    mode_reason: str | None = Field(alias="modeReason")
    mode_changed_at: datetime = Field(alias="modeChangedAt")
    failing_since: datetime | None = Field(alias="failingSince")
    next_probe_at: datetime | None = Field(alias="nextProbeAt")
    previous_secret_expires_at: datetime | None = Field(alias="previousSecretExpiresAt")
    public_keys: list[ChangedWebhookEndpointPublicKeysItem] | None = Field(alias="publicKeys")
    client_certificate: ChangedWebhookEndpointClientCertificate | None = Field(alias="clientCertificate")
    created_at: datetime = Field(alias="createdAt")
    updated_at: datetime = Field(alias="updatedAt")
    recovering_since: datetime | None = Field(alias="recoveringSince")
    waiting: WaitingDeliveries
    dropped_header_names: list[str] = Field(alias="droppedHeaderNames")
    secret_rotation_advised: bool = Field(alias="secretRotationAdvised")
    app_secret: str | None = Field(alias="appSecret")
    same_url_endpoint_ids: list[str] = Field(alias="sameUrlEndpointIds")


class ChangedWebhookEndpointClientCertificate(Model):
    subject: str
    issuer: str
    fingerprint: str
    expires_at: datetime = Field(alias="expiresAt")


class ChangedWebhookEndpointPublicKeysItem(Model):
    public_key: str = Field(alias="publicKey")
    expires_at: datetime | None = Field(alias="expiresAt")


class ControlledThread(Model):
    thread: Thread | None


class Conversation(Model):
    id: str
    phone_number_id: str = Field(alias="phoneNumberId")
    customer: ConversationCustomer
    group: Group | None = Field(default=None)
    opt_out: OptOutMark | None = Field(alias="optOut")
    last_message_at: datetime = Field(alias="lastMessageAt")
    created_at: datetime = Field(alias="createdAt")
    customer_service_window: ConversationCustomerServiceWindow = Field(alias="customerServiceWindow")
    last_message: Message | None = Field(alias="lastMessage")


class ConversationCustomer(Model):
    wa_id: str | None = Field(alias="waId")
    user_id: str | None = Field(alias="userId")
    name: str | None
    username: str | None


class ConversationCustomerServiceWindow(Model):
    is_open: bool = Field(alias="isOpen")
    expires_at: datetime | None = Field(alias="expiresAt")
    last_inbound_at: datetime | None = Field(alias="lastInboundAt")
    last_call_at: datetime | None = Field(alias="lastCallAt")


class ConversationDetails(Model):
    id: str
    phone_number_id: str = Field(alias="phoneNumberId")
    customer: ConversationDetailsCustomer
    group: GroupDetails | None = Field(default=None)
    opt_out: OptOutMark | None = Field(alias="optOut")
    last_message_at: datetime = Field(alias="lastMessageAt")
    created_at: datetime = Field(alias="createdAt")
    customer_service_window: ConversationDetailsCustomerServiceWindow = Field(alias="customerServiceWindow")
    last_message: Message | None = Field(alias="lastMessage")
    phone_number: ConversationDetailsPhoneNumber = Field(alias="phoneNumber")
    message_counts: ConversationDetailsMessageCounts = Field(alias="messageCounts")
    thread: Thread | None


class ConversationDetailsCustomer(Model):
    wa_id: str | None = Field(alias="waId")
    user_id: str | None = Field(alias="userId")
    name: str | None
    username: str | None


class ConversationDetailsCustomerServiceWindow(Model):
    is_open: bool = Field(alias="isOpen")
    expires_at: datetime | None = Field(alias="expiresAt")
    last_inbound_at: datetime | None = Field(alias="lastInboundAt")
    last_call_at: datetime | None = Field(alias="lastCallAt")


class ConversationDetailsMessageCounts(Model):
    inbound: int
    outbound: int
    is_complete: bool = Field(alias="isComplete")


class ConversationDetailsPhoneNumber(Model):
    phone_number_id: str = Field(alias="phoneNumberId")
    display_phone_number: str = Field(alias="displayPhoneNumber")
    verified_name: str = Field(alias="verifiedName")


class ConversationList(Model):
    data: list[Conversation]
    has_more: bool = Field(alias="hasMore")
    next_cursor: str | None = Field(alias="nextCursor")


class CreatedWebhookEndpoint(Model):
    id: str
    url: str
    description: str
    event_types: list[Literal["message", "status", "payment", "order", "media.ready", "test", "window.closing", "preference"] | str] | None = Field(alias="eventTypes")
    phone_number_ids: list[str] | None = Field(alias="phoneNumberIds")
    filter: list[str] | None
    format: Literal["heliograph", "meta"] | str
    """`meta`: the body is the webhook body of the upstream platform, signed in `X-Hub-Signature-256` with the app secret, for software that speaks its API. Types without such a form (`order`, `media.ready`) are not sent."""
    window_closing_minutes: int | None = Field(alias="windowClosingMinutes")
    custom_header_names: list[str] | None = Field(alias="customHeaderNames")
    retry_schedule_seconds: list[int] | None = Field(alias="retryScheduleSeconds")
    timeout_ms: int | None = Field(alias="timeoutMs")
    asymmetric_signature: Literal["none", "ed25519"] | str = Field(alias="asymmetricSignature")
    max_in_flight: int | None = Field(alias="maxInFlight")
    rate_limit_per_second: int | None = Field(alias="rateLimitPerSecond")
    block_limit_seconds: int | None = Field(alias="blockLimitSeconds")
    delivery_workflows: Literal["auto", "always"] | str | None = Field(alias="deliveryWorkflows")
    always_workflows_for: list[Literal["message", "status", "payment", "order", "media.ready", "test", "window.closing", "preference"] | str] | None = Field(alias="alwaysWorkflowsFor")
    order_scope: Literal["event", "conversation", "endpoint"] | str = Field(alias="orderScope")
    buffer_seconds: int | None = Field(alias="bufferSeconds")
    buffer_max_seconds: int | None = Field(alias="bufferMaxSeconds")
    buffer_max_messages: int | None = Field(alias="bufferMaxMessages")
    buffer_types: list[Literal["text", "image", "video", "audio", "document", "sticker", "location", "contacts", "button", "interactive", "reaction"] | str] | None = Field(alias="bufferTypes")
    mode: Literal["open", "probing", "paused", "disabled"] | str
    mode_reason: str | None = Field(alias="modeReason")
    mode_changed_at: datetime = Field(alias="modeChangedAt")
    failing_since: datetime | None = Field(alias="failingSince")
    next_probe_at: datetime | None = Field(alias="nextProbeAt")
    previous_secret_expires_at: datetime | None = Field(alias="previousSecretExpiresAt")
    public_keys: list[CreatedWebhookEndpointPublicKeysItem] | None = Field(alias="publicKeys")
    client_certificate: CreatedWebhookEndpointClientCertificate | None = Field(alias="clientCertificate")
    created_at: datetime = Field(alias="createdAt")
    updated_at: datetime = Field(alias="updatedAt")
    secret: str
    app_secret: str | None = Field(alias="appSecret")
    same_url_endpoint_ids: list[str] = Field(alias="sameUrlEndpointIds")


class CreatedWebhookEndpointClientCertificate(Model):
    subject: str
    issuer: str
    fingerprint: str
    expires_at: datetime = Field(alias="expiresAt")


class CreatedWebhookEndpointPublicKeysItem(Model):
    public_key: str = Field(alias="publicKey")
    expires_at: datetime | None = Field(alias="expiresAt")


class DeleteMediaResponse(Model):
    id: str
    deleted: Literal[True]


class DeleteWebhookEndpointResponse(Model):
    id: str
    deleted: Literal[True]
    dropped: int


class Delivery(Model):
    id: str
    endpoint_id: str = Field(alias="endpointId")
    state: Literal["pending", "delivered", "failed", "dropped"] | str
    attempt_count: int = Field(alias="attemptCount")
    last_status_code: int | None = Field(alias="lastStatusCode")
    last_error: str | None = Field(alias="lastError")
    next_attempt_at: datetime | None = Field(alias="nextAttemptAt")
    stepped_aside_at: datetime | None = Field(alias="steppedAsideAt")
    batch_id: str | None = Field(alias="batchId")
    created_at: datetime = Field(alias="createdAt")
    finished_at: datetime | None = Field(alias="finishedAt")
    workflow_id: str | None = Field(alias="workflowId")
    replay_id: str | None = Field(alias="replayId")
    replay_of: str | None = Field(alias="replayOf")
    attempts: list[DeliveryAttempt]


class DeliveryAttempt(Model):
    attempt: int
    started_at: datetime = Field(alias="startedAt")
    duration_ms: float = Field(alias="durationMs")
    timings: dict[str, Any]
    status_code: int | None = Field(alias="statusCode")
    error: DeliveryAttemptError | None
    url: str
    request_headers: dict[str, str] = Field(alias="requestHeaders")
    response_headers: dict[str, str] | None = Field(alias="responseHeaders")
    response_body: str | None = Field(alias="responseBody")


class DeliveryAttemptError(Model):
    class_: str = Field(alias="class")
    message: str


class DroppedDelivery(Model):
    id: str
    endpoint_id: str = Field(alias="endpointId")
    state: Literal["dropped"]


class EnableWebhookEndpointResponse(Model):
    id: str
    url: str
    description: str
    event_types: list[Literal["message", "status", "payment", "order", "media.ready", "test", "window.closing", "preference"] | str] | None = Field(alias="eventTypes")
    phone_number_ids: list[str] | None = Field(alias="phoneNumberIds")
    filter: list[str] | None
    format: Literal["heliograph", "meta"] | str
    """`meta`: the body is the webhook body of the upstream platform, signed in `X-Hub-Signature-256` with the app secret, for software that speaks its API. Types without such a form (`order`, `media.ready`) are not sent."""
    window_closing_minutes: int | None = Field(alias="windowClosingMinutes")
    custom_header_names: list[str] | None = Field(alias="customHeaderNames")
    retry_schedule_seconds: list[int] | None = Field(alias="retryScheduleSeconds")
    timeout_ms: int | None = Field(alias="timeoutMs")
    asymmetric_signature: Literal["none", "ed25519"] | str = Field(alias="asymmetricSignature")
    max_in_flight: int | None = Field(alias="maxInFlight")
    rate_limit_per_second: int | None = Field(alias="rateLimitPerSecond")
    block_limit_seconds: int | None = Field(alias="blockLimitSeconds")
    delivery_workflows: Literal["auto", "always"] | str | None = Field(alias="deliveryWorkflows")
    always_workflows_for: list[Literal["message", "status", "payment", "order", "media.ready", "test", "window.closing", "preference"] | str] | None = Field(alias="alwaysWorkflowsFor")
    order_scope: Literal["event", "conversation", "endpoint"] | str = Field(alias="orderScope")
    buffer_seconds: int | None = Field(alias="bufferSeconds")
    buffer_max_seconds: int | None = Field(alias="bufferMaxSeconds")
    buffer_max_messages: int | None = Field(alias="bufferMaxMessages")
    buffer_types: list[Literal["text", "image", "video", "audio", "document", "sticker", "location", "contacts", "button", "interactive", "reaction"] | str] | None = Field(alias="bufferTypes")
    mode: Literal["open", "probing", "paused", "disabled"] | str
    mode_reason: str | None = Field(alias="modeReason")
    mode_changed_at: datetime = Field(alias="modeChangedAt")
    failing_since: datetime | None = Field(alias="failingSince")
    next_probe_at: datetime | None = Field(alias="nextProbeAt")
    previous_secret_expires_at: datetime | None = Field(alias="previousSecretExpiresAt")
    public_keys: list[EnableWebhookEndpointResponsePublicKeysItem] | None = Field(alias="publicKeys")
    client_certificate: EnableWebhookEndpointResponseClientCertificate | None = Field(alias="clientCertificate")
    created_at: datetime = Field(alias="createdAt")
    updated_at: datetime = Field(alias="updatedAt")
    recovering_since: datetime | None = Field(alias="recoveringSince")
    waiting: WaitingDeliveries
    dropped: int


class EnableWebhookEndpointResponseClientCertificate(Model):
    subject: str
    issuer: str
    fingerprint: str
    expires_at: datetime = Field(alias="expiresAt")


class EnableWebhookEndpointResponsePublicKeysItem(Model):
    public_key: str = Field(alias="publicKey")
    expires_at: datetime | None = Field(alias="expiresAt")


class EndOptOutResponse(Model):
    ended: int
    left: list[OptOut]


class EndpointAlert(Model):
    id: str
    endpoint_id: str = Field(alias="endpointId")
    alert: str
    state: Literal["waiting", "delivered", "given_up"] | str
    attempts: int
    last_error: str | None = Field(alias="lastError")
    created_at: datetime = Field(alias="createdAt")
    delivered_at: datetime | None = Field(alias="deliveredAt")
    given_up_at: datetime | None = Field(alias="givenUpAt")


class EndpointAlertList(Model):
    data: list[EndpointAlert]
    has_more: bool = Field(alias="hasMore")
    next_cursor: str | None = Field(alias="nextCursor")


class Erasure(Model):
    id: str
    kind: Literal["customer", "conversation"] | str
    subject_id: str = Field(alias="subjectId")
    state: Literal["requested", "running", "done"] | str
    requested_by: str = Field(alias="requestedBy")
    waits_for: str | None = Field(alias="waitsFor")
    counts: dict[str, int]
    refused: dict[str, int]
    created_at: datetime = Field(alias="createdAt")
    started_at: datetime | None = Field(alias="startedAt")
    finished_at: datetime | None = Field(alias="finishedAt")
    report: ErasureReport | None


class ErasureList(Model):
    data: list[Erasure]
    has_more: bool = Field(alias="hasMore")
    next_cursor: str | None = Field(alias="nextCursor")


class ErasureReport(Model):
    report: dict[str, Any]
    signature: ErasureReportSignature


class ErasureReportSignature(Model):
    algorithm: str
    key_id: str = Field(alias="keyId")
    public_key: str = Field(alias="publicKey")
    value: str


ErrorCode: TypeAlias = "Literal[\"invalid_api_key\", \"expired_api_key\", \"ip_not_allowed\", \"insufficient_scope\", \"recipient_not_open\", \"recipient_opted_out\", \"unknown_opt_out\", \"opt_out_of_upstream\", \"invalid_signature\", \"media_url_expired\", \"invalid_media_signature\", \"verification_failed\", \"invalid_parameter\", \"invalid_cursor\", \"invalid_request\", \"invalid_json\", \"not_found\", \"route_not_found\", \"method_not_allowed\", \"erased\", \"unknown_customer\", \"unknown_conversation\", \"request_timeout\", \"body_too_large\", \"storage_quota_exceeded\", \"upload_quota_exceeded\", \"message_limit_reached\", \"unsupported_media_type\", \"waiting_choice_required\", \"secret_in_use\", \"no_signing_key\", \"url_not_verified\", \"url_is_webhook_endpoint\", \"no_operations_url\", \"too_many_endpoints\", \"nothing_to_replay\", \"delivery_settled\", \"attempt_under_way\", \"delivery_not_first\", \"delivery_held\", \"test_event_pending\", \"deliveries_pending\", \"buffer_needs_conversation_order\", \"endpoint_not_enabled\", \"tenant_suspended\", \"scope_not_grantable\", \"unknown_tenant\", \"unknown_waba\", \"unknown_key\", \"unknown_user\", \"user_exists\", \"user_differs\", \"too_many_links\", \"unknown_operations_hook\", \"too_many_operations_hooks\", \"key_differs\", \"external_id_taken\", \"tenant_has_external_id\", \"tenant_in_use\", \"waba_taken\", \"url_not_allowed\", \"unknown_setup_link\", \"too_many_setup_links\", \"signup_not_configured\", \"phone_number_taken\", \"too_many_replays\", \"replay_finished\", \"replay_too_large\", \"invalid_url\", \"unknown_phone_number\", \"unknown_endpoint\", \"unknown_delivery\", \"unknown_media\", \"media_expired\", \"wrong_media_type\", \"unsupported_file_type\", \"file_too_large\", \"invalid_multipart\", \"too_many_uploads\", \"too_many_streams\", \"template_paused\", \"template_disabled\", \"template_variables_wrong\", \"message_not_scheduled\", \"too_many_scheduled\", \"too_many_broadcasts\", \"broadcast_started\", \"broadcast_not_started\", \"broadcast_finished\", \"broadcast_empty\", \"broadcast_too_large\", \"conversation_of_group\", \"message_not_inbound\", \"payment_configuration_required\", \"idempotency_key_in_flight\", \"idempotency_key_reused\", \"upstream_refused\", \"access_token_missing\", \"upstream_unavailable\", \"outcome_unknown\", \"message_not_sent\", \"rate_limit_exceeded\", \"headers_too_large\", \"internal_error\", \"service_unavailable\"] | str"


class Event(Model):
    id: str
    event_type: Literal["message", "status", "payment", "order", "media.ready", "test", "window.closing", "preference", "message.batch"] | str = Field(alias="eventType")
    event_id: str = Field(alias="eventId")
    phone_number_id: str | None = Field(alias="phoneNumberId")
    sequence: int
    created_at: datetime = Field(alias="createdAt")
    occurred_at: datetime | None = Field(alias="occurredAt")
    body: dict[str, Any] | None
    delivery_summary: EventDeliverySummary = Field(alias="deliverySummary")


class EventDeliverySummary(Model):
    pending: int
    delivered: int
    failed: int
    dropped: int


class EventDetails(Model):
    id: str
    event_type: Literal["message", "status", "payment", "order", "media.ready", "test", "window.closing", "preference", "message.batch"] | str = Field(alias="eventType")
    event_id: str = Field(alias="eventId")
    phone_number_id: str | None = Field(alias="phoneNumberId")
    sequence: int
    created_at: datetime = Field(alias="createdAt")
    occurred_at: datetime | None = Field(alias="occurredAt")
    body: dict[str, Any] | None
    filtered_endpoint_ids: list[str] = Field(alias="filteredEndpointIds")
    """Endpoints that take events of this type and number and have no delivery of it, because their content filter, as it is now, does not take it."""
    deliveries: list[Delivery]


class EventList(Model):
    data: list[Event]
    has_more: bool = Field(alias="hasMore")
    next_cursor: str | None = Field(alias="nextCursor")


class GetPaymentResponse(Model):
    reference_id: str = Field(alias="referenceId")
    phone_number_id: str = Field(alias="phoneNumberId")
    status: str | None
    amount: dict[str, Any] | None = Field(default=None)
    currency: str | None = Field(default=None)
    updated_at: datetime | None = Field(alias="updatedAt")
    transactions: list[dict[str, Any]]
    refunds: list[dict[str, Any]]
    service_message_id: str | None = Field(alias="serviceMessageId")
    conversation_id: str | None = Field(alias="conversationId")
    events: list[GetPaymentResponseEventsItem]
    upstream: GetPaymentResponseUpstream | None = Field(default=None)


class GetPaymentResponseEventsItem(Model):
    id: str
    event_id: str = Field(alias="eventId")
    status: str | None
    created_at: datetime = Field(alias="createdAt")


class GetPaymentResponseUpstream(Model):
    asked_at: datetime = Field(alias="askedAt")
    payments: list[dict[str, Any]]


class Group(Model):
    id: str
    subject: str | None
    state: Literal["active", "suspended", "deleted"] | str | None


class GroupDetails(Model):
    id: str
    subject: str | None
    state: Literal["active", "suspended", "deleted"] | str | None
    description: str | None
    members: list[GroupMember]


class GroupMember(Model):
    wa_id: str | None = Field(alias="waId")
    user_id: str | None = Field(alias="userId")
    name: str | None
    username: str | None
    state: Literal["member", "requested"] | str
    since: datetime


class ListTemplatesResponse(Model):
    data: list[ListTemplatesResponseDataItem]
    has_more: bool = Field(alias="hasMore")
    next_cursor: str | None = Field(alias="nextCursor")


class ListTemplatesResponseDataItem(Model):
    id: str
    name: str
    language: str
    status: str
    category: str
    components: list[dict[str, Any]]


class MarkMessageReadResponse(Model):
    service_message_id: str = Field(alias="serviceMessageId")
    meta_message_id: str = Field(alias="metaMessageId")
    read_at: datetime = Field(alias="readAt")
    typing_indicator: bool = Field(alias="typingIndicator")


class MediaError(Model):
    code: str
    message: str


class MediaReadyEvent(Model):
    event_type: Literal["media.ready"] = Field(alias="eventType")
    """The type; it decides the form of `data`."""
    user_id: int = Field(alias="userId")
    """The tenant."""
    waba_id: str = Field(alias="wabaId")
    """The WhatsApp Business Account."""
    phone_number_id: str = Field(alias="phoneNumberId")
    """The number that received or sent."""
    event_id: str = Field(alias="eventId")
    """The id of the subject, not unique: deduplicate by the header webhook-id."""
    occurred_at: datetime = Field(alias="occurredAt")
    """When it was released for delivery, UTC."""
    data: MediaReadyEventData
    """Content of the event."""


class MediaReadyEventData(Model):
    """Content of the event."""

    meta_message_id: str = Field(alias="metaMessageId")
    """message.id of the message event."""
    service_message_id: str = Field(alias="serviceMessageId")
    """Our id of the message."""
    media_type: str = Field(alias="mediaType")
    """`image`, `video`, `audio`, `document` or `sticker`."""
    mime_type: str = Field(alias="mimeType")
    """As the message says it."""
    media_path: str = Field(alias="mediaPath")
    """`mediaUrl` without its beginning."""
    media_url: str = Field(alias="mediaUrl")
    """Prefer it to `mediaPath` when you download the file. It needs no API key: everyone with it can read the file."""
    caption: str | None = Field(default=None)
    """The words of the customer below the file."""


class Message(Model):
    service_message_id: str = Field(alias="serviceMessageId")
    meta_message_id: str | None = Field(alias="metaMessageId")
    conversation_id: str = Field(alias="conversationId")
    phone_number_id: str = Field(alias="phoneNumberId")
    direction: Literal["inbound", "outbound"] | str
    type: str
    origin: Literal["business_app", "history", "other_responder"] | str | None = Field(default=None)
    timestamp: datetime | None
    created_at: datetime = Field(alias="createdAt")
    read_at: datetime | None = Field(default=None, alias="readAt")
    state: Literal["received", "scheduled", "queued", "sending", "accepted", "failed", "unknown", "cancelled"] | str
    send_at: datetime | None = Field(default=None, alias="sendAt")
    not_after: datetime | None = Field(default=None, alias="notAfter")
    status: str | None
    status_at: datetime | None = Field(alias="statusAt")
    context_id: str | None = Field(default=None, alias="contextId")
    reply_to: MessageReplyTo | None = Field(default=None, alias="replyTo")
    target_id: str | None = Field(default=None, alias="targetId")
    superseded_by: str | None = Field(default=None, alias="supersededBy")
    sender: str | None = Field(default=None)
    participants: list[MessageParticipant] | None = Field(default=None)
    call: MessageCall | None = Field(default=None)
    media_pending: bool = Field(alias="mediaPending")
    media_url: str | None = Field(alias="mediaUrl")
    media_error: MediaError | None = Field(default=None, alias="mediaError")
    media_type: str | None = Field(default=None, alias="mediaType")
    mime_type: str | None = Field(default=None, alias="mimeType")
    caption: str | None = Field(default=None)
    file_name: str | None = Field(default=None, alias="fileName")
    reactions: list[MessageReaction]
    edited_at: datetime | None = Field(default=None, alias="editedAt")
    edited_by: str | None = Field(default=None, alias="editedBy")
    edited_message: dict[str, Any] | None = Field(default=None, alias="editedMessage")
    revoked_at: datetime | None = Field(default=None, alias="revokedAt")
    message: dict[str, Any]


class MessageBatchEvent(Model):
    event_type: Literal["message.batch"] = Field(alias="eventType")
    """Several events in one request."""
    event_id: str = Field(alias="eventId")
    """The id of the batch, as `batchId` in the delivery log."""
    count: int
    """How many events it holds."""
    events: list[MessageEvent]
    """The events, the oldest first, each as it would have come alone."""


class MessageCall(Model):
    state: Literal["ringing", "accepted", "failed", "rejected", "completed"] | str
    started_at: datetime | None = Field(alias="startedAt")
    ended_at: datetime | None = Field(alias="endedAt")
    duration_seconds: int | None = Field(alias="durationSeconds")
    error_code: int | None = Field(alias="errorCode")


class MessageDetails(Model):
    service_message_id: str = Field(alias="serviceMessageId")
    meta_message_id: str | None = Field(alias="metaMessageId")
    conversation_id: str = Field(alias="conversationId")
    phone_number_id: str = Field(alias="phoneNumberId")
    direction: Literal["inbound", "outbound"] | str
    type: str
    origin: Literal["business_app", "history", "other_responder"] | str | None = Field(default=None)
    timestamp: datetime | None
    created_at: datetime = Field(alias="createdAt")
    read_at: datetime | None = Field(default=None, alias="readAt")
    state: Literal["received", "scheduled", "queued", "sending", "accepted", "failed", "unknown", "cancelled"] | str
    send_at: datetime | None = Field(default=None, alias="sendAt")
    not_after: datetime | None = Field(default=None, alias="notAfter")
    status: str | None
    status_at: datetime | None = Field(alias="statusAt")
    context_id: str | None = Field(default=None, alias="contextId")
    reply_to: MessageDetailsReplyTo | None = Field(default=None, alias="replyTo")
    target_id: str | None = Field(default=None, alias="targetId")
    superseded_by: str | None = Field(default=None, alias="supersededBy")
    sender: str | None = Field(default=None)
    participants: list[MessageParticipant] | None = Field(default=None)
    call: MessageCall | None = Field(default=None)
    media_pending: bool = Field(alias="mediaPending")
    media_url: str | None = Field(alias="mediaUrl")
    media_error: MediaError | None = Field(default=None, alias="mediaError")
    media_type: str | None = Field(default=None, alias="mediaType")
    mime_type: str | None = Field(default=None, alias="mimeType")
    caption: str | None = Field(default=None)
    file_name: str | None = Field(default=None, alias="fileName")
    reactions: list[MessageReaction]
    edited_at: datetime | None = Field(default=None, alias="editedAt")
    edited_by: str | None = Field(default=None, alias="editedBy")
    edited_message: dict[str, Any] | None = Field(default=None, alias="editedMessage")
    revoked_at: datetime | None = Field(default=None, alias="revokedAt")
    message: dict[str, Any]
    to: str | None = Field(default=None)
    recipient: str | None = Field(default=None)
    wa_id: str | None = Field(default=None, alias="waId")
    attempts: int | None = Field(default=None)
    message_status: str | None = Field(default=None, alias="messageStatus")
    error: MessageDetailsError | None = Field(default=None)
    statuses: list[MessageStatus]


class MessageDetailsError(Model):
    code: str
    message: str
    advice: str | None = Field(default=None)
    upstream: dict[str, Any] | None = Field(default=None)


class MessageDetailsReplyTo(Model):
    service_message_id: str | None = Field(alias="serviceMessageId")
    meta_message_id: str = Field(alias="metaMessageId")


class MessageEvent(Model):
    event_type: Literal["message"] = Field(alias="eventType")
    """The type; it decides the form of `data`."""
    user_id: int = Field(alias="userId")
    """The tenant."""
    waba_id: str = Field(alias="wabaId")
    """The WhatsApp Business Account."""
    phone_number_id: str = Field(alias="phoneNumberId")
    """The number that received or sent."""
    event_id: str = Field(alias="eventId")
    """The id of the subject, not unique: deduplicate by the header webhook-id."""
    occurred_at: datetime = Field(alias="occurredAt")
    """When it was released for delivery, UTC."""
    data: MessageEventData
    """Content of the event."""


class MessageEventData(Model):
    """Content of the event."""

    metadata: dict[str, Any]
    contacts: list[dict[str, Any]]
    """Upstream’s entries of this customer, unchanged."""
    message: dict[str, Any]
    value: dict[str, Any] | None = Field(default=None)
    """Further members of the body of upstream, such as `conversation_context`. Absent where there are none."""


class MessageList(Model):
    data: list[Message]
    has_more: bool = Field(alias="hasMore")
    next_cursor: str | None = Field(alias="nextCursor")


class MessageMedia(Model):
    service_message_id: str = Field(alias="serviceMessageId")
    meta_message_id: str = Field(alias="metaMessageId")
    media_pending: bool = Field(alias="mediaPending")
    media_type: str | None = Field(alias="mediaType")
    mime_type: str | None = Field(alias="mimeType")
    media_path: str | None = Field(alias="mediaPath")
    media_url: str | None = Field(alias="mediaUrl")
    caption: str | None = Field(default=None)
    file_name: str | None = Field(default=None, alias="fileName")
    size_bytes: int | None = Field(alias="sizeBytes")
    sha256: str | None
    media_error: MediaError | None = Field(default=None, alias="mediaError")


class MessageParticipant(Model):
    participant: str
    status: str
    status_at: datetime | None = Field(alias="statusAt")


class MessageReaction(Model):
    emoji: str
    from_: Literal["customer", "business"] | str = Field(alias="from")
    at: datetime
    service_message_id: str = Field(alias="serviceMessageId")
    meta_message_id: str = Field(alias="metaMessageId")


class MessageReplyTo(Model):
    service_message_id: str | None = Field(alias="serviceMessageId")
    meta_message_id: str = Field(alias="metaMessageId")


class MessageStatus(Model):
    status: str
    timestamp: datetime | None
    received_at: datetime = Field(alias="receivedAt")
    recipient_id: str | None = Field(default=None, alias="recipientId")
    participant: str | None = Field(default=None)
    pricing: dict[str, Any] | None = Field(default=None)
    conversation: dict[str, Any] | None = Field(default=None)
    errors: list[dict[str, Any]] | None = Field(default=None)


class MessageTemplate(Model):
    id: str
    name: str
    language: str
    status: str | None
    category: str | None
    quality: str | None
    rejected_reason: str | None = Field(alias="rejectedReason")
    components: list[dict[str, Any]] | None
    updated_at: datetime = Field(alias="updatedAt")


class MessageTemplateList(Model):
    data: list[MessageTemplate]
    has_more: bool = Field(alias="hasMore")
    next_cursor: str | None = Field(alias="nextCursor")


class MessageUsage(Model):
    as_of: datetime | None = Field(alias="asOf")
    is_final: bool = Field(alias="isFinal")
    rows: list[MessageUsageRow]


class MessageUsageRow(Model):
    day: str
    phone_number_id: str | None = Field(default=None, alias="phoneNumberId")
    category: str | None = Field(default=None)
    pricing_type: str | None = Field(default=None, alias="pricingType")
    country: str | None = Field(default=None)
    sent: int
    delivered: int
    read: int
    failed: int
    billable: int
    received: int
    cost: UsageCost | None


class OperationsUrl(Model):
    url: str | None


class OptOut(Model):
    id: str
    customer: OptOutCustomer
    phone_number_id: str | None = Field(alias="phoneNumberId")
    scope: Literal["marketing", "all"] | str
    source: Literal["upstream", "error_131050", "keyword", "api", "portal"] | str
    since: datetime
    reason: str | None


class OptOutCustomer(Model):
    wa_id: str | None = Field(alias="waId")
    user_id: str | None = Field(alias="userId")
    name: str | None
    username: str | None


class OptOutList(Model):
    data: list[OptOut]
    has_more: bool = Field(alias="hasMore")
    next_cursor: str | None = Field(alias="nextCursor")


class OptOutMark(Model):
    scope: Literal["marketing", "all"] | str
    source: Literal["upstream", "error_131050", "keyword", "api", "portal"] | str
    since: datetime


class OptOutWords(Model):
    opt_out_words: list[str] = Field(alias="optOutWords")
    opt_in_words: list[str] = Field(alias="optInWords")


class OrderEvent(Model):
    event_type: Literal["order"] = Field(alias="eventType")
    """The type; it decides the form of `data`."""
    user_id: int = Field(alias="userId")
    """The tenant."""
    waba_id: str = Field(alias="wabaId")
    """The WhatsApp Business Account."""
    phone_number_id: str = Field(alias="phoneNumberId")
    """The number that received or sent."""
    event_id: str = Field(alias="eventId")
    """The id of the subject, not unique: deduplicate by the header webhook-id."""
    occurred_at: datetime = Field(alias="occurredAt")
    """When it was released for delivery, UTC."""
    data: OrderEventData
    """Content of the event."""


class OrderEventData(Model):
    """Content of the event."""

    metadata: dict[str, Any]
    contacts: list[dict[str, Any]]
    """Upstream’s entries of this customer, unchanged."""
    order: dict[str, Any]
    """The unchanged upstream cart."""
    service: OrderEventDataService
    """Details of the cart that Heliograph adds."""


class OrderEventDataService(Model):
    """Details of the cart that Heliograph adds."""

    order_id: int
    """Counts the orders of the tenant."""
    order_number: str
    """The same for people: `ORD-` and the `order_id`."""
    items_count: int
    """How many lines `items` has."""
    total_amount: float
    """The sum of quantity × price, in the currency of the first line."""
    currency: str | None = Field(default=None)
    """The currency of the first line as ISO 4217."""
    thumbnail_url: str
    """A picture of the first product, or a placeholder."""
    items: list[dict[str, Any]]
    """Prefer these items when you render the order."""


class PaymentEvent(Model):
    event_type: Literal["payment"] = Field(alias="eventType")
    """The type; it decides the form of `data`."""
    user_id: int = Field(alias="userId")
    """The tenant."""
    waba_id: str = Field(alias="wabaId")
    """The WhatsApp Business Account."""
    phone_number_id: str = Field(alias="phoneNumberId")
    """The number that received or sent."""
    event_id: str = Field(alias="eventId")
    """The id of the subject, not unique: deduplicate by the header webhook-id."""
    occurred_at: datetime = Field(alias="occurredAt")
    """When it was released for delivery, UTC."""
    data: PaymentEventData
    """Content of the event."""


class PaymentEventData(Model):
    """Content of the event."""

    metadata: dict[str, Any]
    reference_id: str | None = Field(default=None)
    """The id that you gave the payment in the order message."""
    status: str | None = Field(default=None)
    """captured, pending, failed, … After `captured`, send `order_status` messages to the customer."""
    amount: dict[str, Any] | None = Field(default=None)
    currency: str | None = Field(default=None)
    """The currency as ISO 4217, such as `INR`."""
    transaction: dict[str, Any] | None = Field(default=None)
    """The latest transaction of the payment."""
    recipient_id: str | None = Field(default=None)
    """The phone number of the customer in digits."""
    timestamp: str | None = Field(default=None)
    """Seconds since 1970."""
    raw: dict[str, Any]
    """The unchanged upstream status."""
    value: dict[str, Any] | None = Field(default=None)
    """Further members of the body of upstream, such as `conversation_context`. Absent where there are none."""


class PreferenceEvent(Model):
    event_type: Literal["preference"] = Field(alias="eventType")
    """The type; it decides the form of `data`."""
    user_id: int = Field(alias="userId")
    """The tenant."""
    waba_id: str = Field(alias="wabaId")
    """The WhatsApp Business Account."""
    phone_number_id: str | None = Field(alias="phoneNumberId")
    """The number of yours that it is about; null for all of them."""
    event_id: str = Field(alias="eventId")
    """The id of the subject, not unique: deduplicate by the header webhook-id."""
    occurred_at: datetime = Field(alias="occurredAt")
    """When it was released for delivery, UTC."""
    data: PreferenceEventData
    """Content of the event."""


class PreferenceEventData(Model):
    """Content of the event."""

    customer: PreferenceEventDataCustomer
    """Whose wish it is."""
    phone_number_id: str | None = Field(alias="phoneNumberId")
    """The number of yours that it is about; null for all of them."""
    scope: str
    """`marketing`, or `all`: nothing but within the service window."""
    state: str
    """`stop` or `resume`."""
    source: str
    """Who said it: `upstream`, `error_131050`, `keyword`, `api` or `portal`."""
    since: datetime
    """Since when it is so."""


class PreferenceEventDataCustomer(Model):
    """Whose wish it is."""

    wa_id: str | None = Field(alias="waId")
    """The phone number, as upstream spells it."""
    user_id: str | None = Field(alias="userId")
    """The user id."""


class Replay(Model):
    id: str
    state: Literal["running", "paused", "done", "cancelled"] | str
    selection: ReplaySelection
    total: int
    queued: int
    skipped: int
    requested_by: str = Field(alias="requestedBy")
    created_at: datetime = Field(alias="createdAt")
    finished_at: datetime | None = Field(alias="finishedAt")


class ReplayCount(Model):
    dry_run: Literal[True] = Field(alias="dryRun")
    deliveries: int
    by_type: dict[str, int] = Field(alias="byType")
    by_endpoint: dict[str, int] = Field(alias="byEndpoint")
    oldest: datetime | None
    newest: datetime | None
    skipped: ReplayCountSkipped


class ReplayCountSkipped(Model):
    pending: int
    no_body: int = Field(alias="noBody")
    endpoint_gone: int = Field(alias="endpointGone")


class ReplayDetails(Model):
    id: str
    state: Literal["running", "paused", "done", "cancelled"] | str
    selection: ReplayDetailsSelection
    total: int
    queued: int
    skipped: int
    requested_by: str = Field(alias="requestedBy")
    created_at: datetime = Field(alias="createdAt")
    finished_at: datetime | None = Field(alias="finishedAt")
    outcomes: ReplayDetailsOutcomes


class ReplayDetailsOutcomes(Model):
    pending: int
    delivered: int
    failed: int
    dropped: int


class ReplayDetailsSelection(Model):
    delivery_ids: list[str] | None = Field(alias="deliveryIds")
    event_ids: list[str] | None = Field(alias="eventIds")
    endpoint_id: str | None = Field(alias="endpointId")
    from_: datetime | None = Field(alias="from")
    to: datetime | None
    event_types: list[str] | None = Field(alias="eventTypes")
    states: list[str] | None


class ReplayList(Model):
    data: list[Replay]
    has_more: bool = Field(alias="hasMore")
    next_cursor: str | None = Field(alias="nextCursor")


class ReplaySelection(Model):
    delivery_ids: list[str] | None = Field(alias="deliveryIds")
    event_ids: list[str] | None = Field(alias="eventIds")
    endpoint_id: str | None = Field(alias="endpointId")
    from_: datetime | None = Field(alias="from")
    to: datetime | None
    event_types: list[str] | None = Field(alias="eventTypes")
    states: list[str] | None


class RetriedDelivery(Model):
    id: str
    endpoint_id: str = Field(alias="endpointId")
    state: Literal["pending"]
    retried: bool


class RetriedWebhookEndpoint(Model):
    id: str
    retried: int
    probed: bool
    more: bool


class RotatedSecret(Model):
    id: str
    secret: str
    previous_secret_expires_at: datetime | None = Field(alias="previousSecretExpiresAt")


class RotatedSigningKey(Model):
    id: str
    public_key: str = Field(alias="publicKey")
    previous_key_expires_at: datetime | None = Field(alias="previousKeyExpiresAt")


class SavedOperationsUrl(Model):
    url: str
    secret: str | None
    secret_rotation_advised: bool = Field(alias="secretRotationAdvised")


class ScheduledMessage(Model):
    service_message_id: str = Field(alias="serviceMessageId")
    conversation_id: str = Field(alias="conversationId")
    phone_number_id: str = Field(alias="phoneNumberId")
    type: str
    state: Literal["scheduled", "cancelled"] | str
    send_at: datetime = Field(alias="sendAt")
    not_after: datetime | None = Field(alias="notAfter")
    created_at: datetime = Field(alias="createdAt")
    message: dict[str, Any]


class ScheduledMessageList(Model):
    data: list[ScheduledMessage]
    has_more: bool = Field(alias="hasMore")
    next_cursor: str | None = Field(alias="nextCursor")


class SendWarning(Model):
    param: str
    message: str


class SentMessage(Model):
    service_message_id: str = Field(alias="serviceMessageId")
    conversation_id: str = Field(alias="conversationId")
    meta_message_id: str | None = Field(alias="metaMessageId")
    state: Literal["accepted", "queued", "unknown", "scheduled", "cancelled"] | str
    send_at: datetime | None = Field(default=None, alias="sendAt")
    message_status: str | None = Field(default=None, alias="messageStatus")
    wa_id: str | None = Field(default=None, alias="waId")
    """The WhatsApp id of the recipient; can differ from the digits of `to`."""
    advice: str | None = Field(default=None)
    warnings: list[SendWarning] | None = Field(default=None)
    """Types and members that the service does not know and passed on unchanged."""


class StatusEvent(Model):
    event_type: Literal["status"] = Field(alias="eventType")
    """The type; it decides the form of `data`."""
    user_id: int = Field(alias="userId")
    """The tenant."""
    waba_id: str = Field(alias="wabaId")
    """The WhatsApp Business Account."""
    phone_number_id: str = Field(alias="phoneNumberId")
    """The number that received or sent."""
    event_id: str = Field(alias="eventId")
    """The id of the subject, not unique: deduplicate by the header webhook-id."""
    occurred_at: datetime = Field(alias="occurredAt")
    """When it was released for delivery, UTC."""
    data: StatusEventData
    """Content of the event."""


class StatusEventData(Model):
    """Content of the event."""

    metadata: dict[str, Any]
    contacts: list[dict[str, Any]] | None = Field(default=None)
    """Upstream’s entries of this customer, unchanged."""
    status: dict[str, Any]
    value: dict[str, Any] | None = Field(default=None)
    """Further members of the body of upstream, such as `conversation_context`. Absent where there are none."""


class TemplateMedia(Model):
    handle: str


class TestConnectionResponse(Model):
    status: Literal["ok"]


class TestEvent(Model):
    event_type: Literal["test"] = Field(alias="eventType")
    """The type; it decides the form of `data`."""
    user_id: int = Field(alias="userId")
    """The tenant."""
    waba_id: str = Field(alias="wabaId")
    """The WhatsApp Business Account."""
    phone_number_id: str = Field(alias="phoneNumberId")
    """The number that received or sent."""
    event_id: str = Field(alias="eventId")
    """The id of the subject, not unique: deduplicate by the header webhook-id."""
    occurred_at: datetime = Field(alias="occurredAt")
    """When it was released for delivery, UTC."""
    data: TestEventData
    """Content of the event."""


class TestEventData(Model):
    """Content of the event."""

    message: str
    """Always the same sentence."""
    business_name: str = Field(alias="businessName")
    """The name of the tenant."""


class TestOutcome(Model):
    endpoint_id: str = Field(alias="endpointId")
    id: str
    event_id: str = Field(alias="eventId")
    delivery_id: str = Field(alias="deliveryId")
    state: Literal["pending", "delivered", "failed", "dropped"] | str
    status_code: int | None = Field(alias="statusCode")
    error: str | None
    duration_ms: float | None = Field(alias="durationMs")


class Thread(Model):
    owner: Literal["us", "other", "unknown"] | str
    role: str | None
    since: datetime


class UploadedMedia(Model):
    id: str
    media_type: Literal["image", "video", "audio", "document", "sticker"] | str = Field(alias="mediaType")
    mime_type: str = Field(alias="mimeType")
    size_bytes: int = Field(alias="sizeBytes")
    sha256: str
    file_name: str | None = Field(alias="fileName")
    created_at: datetime = Field(alias="createdAt")
    expires_at: datetime = Field(alias="expiresAt")


class UpstreamEvent(Model):
    event_type: str = Field(alias="eventType")
    """`upstream.` and the field."""
    user_id: int = Field(alias="userId")
    """The tenant."""
    waba_id: str = Field(alias="wabaId")
    """The WhatsApp Business Account."""
    phone_number_id: str | None = Field(alias="phoneNumberId")
    """The number that the value names; null where it names none."""
    event_id: str = Field(alias="eventId")
    """The id of the subject, not unique: deduplicate by the header webhook-id."""
    occurred_at: datetime = Field(alias="occurredAt")
    """When it was released for delivery, UTC."""
    data: UpstreamEventData
    """Content of the event."""


class UpstreamEventData(Model):
    """Content of the event."""

    field: str
    """The field, as upstream calls it."""
    value: Any
    """What upstream reports, unmodified."""


class Usage(Model):
    stored: UsageStored
    uploaded_today: UsageUploadedToday = Field(alias="uploadedToday")
    kept_days: UsageKeptDays = Field(alias="keptDays")
    media_url_ttl_seconds: int | None = Field(alias="mediaUrlTtlSeconds")


class UsageCost(Model):
    amount: str
    currency: str | None
    volume: int
    source: Literal["upstream"]
    reported_at: datetime = Field(alias="reportedAt")


class UsageKeptDays(Model):
    messages: int | None
    media: int | None
    events: int | None
    audit: int | None


class UsageStored(Model):
    files: int
    bytes: int
    max_bytes: int | None = Field(alias="maxBytes")


class UsageUploadedToday(Model):
    files: int
    max_files: int | None = Field(alias="maxFiles")
    bytes: int
    max_bytes: int | None = Field(alias="maxBytes")


class WabaCheck(Model):
    waba_id: str = Field(alias="wabaId")
    checks: list[WabaCheckChecksItem]


class WabaCheckChecksItem(Model):
    id: str
    question: str
    status: Literal["up", "degraded", "down", "unknown"] | str
    detail: str
    todo: str | None = Field(default=None)


class WaitingDeliveries(Model):
    count: int
    more: bool
    due: int
    queued: int
    held: int
    """Not to be sent yet: `unreleased` and `suspended` together."""
    unreleased: int
    """Their event has no body yet, or waits for other messages of its conversation."""
    suspended: int
    """Their replay is paused."""
    retrying: int
    claimed: int
    oldest_ms: float | None = Field(alias="oldestMs")


class WebhookEndpoint(Model):
    id: str
    url: str
    description: str
    event_types: list[Literal["message", "status", "payment", "order", "media.ready", "test", "window.closing", "preference"] | str] | None = Field(alias="eventTypes")
    phone_number_ids: list[str] | None = Field(alias="phoneNumberIds")
    filter: list[str] | None
    format: Literal["heliograph", "meta"] | str
    """`meta`: the body is the webhook body of the upstream platform, signed in `X-Hub-Signature-256` with the app secret, for software that speaks its API. Types without such a form (`order`, `media.ready`) are not sent."""
    window_closing_minutes: int | None = Field(alias="windowClosingMinutes")
    custom_header_names: list[str] | None = Field(alias="customHeaderNames")
    retry_schedule_seconds: list[int] | None = Field(alias="retryScheduleSeconds")
    timeout_ms: int | None = Field(alias="timeoutMs")
    asymmetric_signature: Literal["none", "ed25519"] | str = Field(alias="asymmetricSignature")
    max_in_flight: int | None = Field(alias="maxInFlight")
    rate_limit_per_second: int | None = Field(alias="rateLimitPerSecond")
    block_limit_seconds: int | None = Field(alias="blockLimitSeconds")
    delivery_workflows: Literal["auto", "always"] | str | None = Field(alias="deliveryWorkflows")
    always_workflows_for: list[Literal["message", "status", "payment", "order", "media.ready", "test", "window.closing", "preference"] | str] | None = Field(alias="alwaysWorkflowsFor")
    order_scope: Literal["event", "conversation", "endpoint"] | str = Field(alias="orderScope")
    buffer_seconds: int | None = Field(alias="bufferSeconds")
    buffer_max_seconds: int | None = Field(alias="bufferMaxSeconds")
    buffer_max_messages: int | None = Field(alias="bufferMaxMessages")
    buffer_types: list[Literal["text", "image", "video", "audio", "document", "sticker", "location", "contacts", "button", "interactive", "reaction"] | str] | None = Field(alias="bufferTypes")
    mode: Literal["open", "probing", "paused", "disabled"] | str
    mode_reason: str | None = Field(alias="modeReason")
    mode_changed_at: datetime = Field(alias="modeChangedAt")
    failing_since: datetime | None = Field(alias="failingSince")
    next_probe_at: datetime | None = Field(alias="nextProbeAt")
    previous_secret_expires_at: datetime | None = Field(alias="previousSecretExpiresAt")
    public_keys: list[WebhookEndpointPublicKeysItem] | None = Field(alias="publicKeys")
    client_certificate: WebhookEndpointClientCertificate | None = Field(alias="clientCertificate")
    created_at: datetime = Field(alias="createdAt")
    updated_at: datetime = Field(alias="updatedAt")
    recovering_since: datetime | None = Field(alias="recoveringSince")
    waiting: WaitingDeliveries


class WebhookEndpointClientCertificate(Model):
    subject: str
    issuer: str
    fingerprint: str
    expires_at: datetime = Field(alias="expiresAt")


class WebhookEndpointList(Model):
    data: list[WebhookEndpoint]
    has_more: bool = Field(alias="hasMore")
    next_cursor: str | None = Field(alias="nextCursor")


class WebhookEndpointPublicKeysItem(Model):
    public_key: str = Field(alias="publicKey")
    expires_at: datetime | None = Field(alias="expiresAt")


class WebhookEndpointStatistics(Model):
    endpoint_id: str = Field(alias="endpointId")
    interval: Literal["minute", "hour"] | str
    since: datetime
    until: datetime
    total: WebhookEndpointStatisticsTotal
    waiting: WaitingDeliveries
    runs: WebhookEndpointStatisticsRuns
    """Of the last 100 attempted deliveries of seven days, how many had a workflow run; with `alwaysWorkflowsFor`, of the deliveries of these event types."""
    data: list[WebhookEndpointStatisticsDataItem]


class WebhookEndpointStatisticsDataItem(Model):
    at: datetime
    successes: int
    failures: int
    mean_duration_ms: float | None = Field(alias="meanDurationMs")


class WebhookEndpointStatisticsRuns(Model):
    """Of the last 100 attempted deliveries of seven days, how many had a workflow run; with `alwaysWorkflowsFor`, of the deliveries of these event types."""

    deliveries: int
    with_run: int = Field(alias="withRun")


class WebhookEndpointStatisticsTotal(Model):
    successes: int
    failures: int
    mean_duration_ms: float | None = Field(alias="meanDurationMs")


class WindowClosingEvent(Model):
    event_type: Literal["window.closing"] = Field(alias="eventType")
    """The type; it decides the form of `data`."""
    user_id: int = Field(alias="userId")
    """The tenant."""
    waba_id: str = Field(alias="wabaId")
    """The WhatsApp Business Account."""
    phone_number_id: str = Field(alias="phoneNumberId")
    """The number that received or sent."""
    event_id: str = Field(alias="eventId")
    """The id of the subject, not unique: deduplicate by the header webhook-id."""
    occurred_at: datetime = Field(alias="occurredAt")
    """When it was released for delivery, UTC."""
    data: WindowClosingEventData
    """Content of the event."""


class WindowClosingEventData(Model):
    """Content of the event."""

    conversation_id: str = Field(alias="conversationId")
    """Our id of the conversation."""
    customer: WindowClosingEventDataCustomer | None
    """Who wrote; null for a group."""
    group_id: str | None = Field(alias="groupId")
    """The group; null for a conversation with one customer."""
    last_inbound_at: datetime | None = Field(alias="lastInboundAt")
    """When the customer, or one of the group, last wrote."""
    last_call_at: datetime | None = Field(alias="lastCallAt")
    """When the customer last called, or accepted a call."""
    expires_at: datetime = Field(alias="expiresAt")
    """When the window ends, unless they write again."""


class WindowClosingEventDataCustomer(Model):
    wa_id: str | None = Field(alias="waId")
    """The phone number, as upstream spells it."""
    user_id: str | None = Field(alias="userId")
    """The user id."""
