# Made by `npm run client` from the OpenAPI document. Do not edit it.
"""What responses and webhooks have."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypeAlias

from pydantic import Field

from heliograph._model import Model


class Brand(Model):
    name: str | None
    accent_color: str | None = Field(alias="accentColor")
    logo_url: str | None = Field(alias="logoUrl")


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


class DeletedOperationsHook(Model):
    hook_ref: str = Field(alias="hookRef")


class DeletedTenantEndpoint(Model):
    id: str
    dropped: int


class EndedPortalSessions(Model):
    ended: int


ErrorCode: TypeAlias = "Literal[\"invalid_api_key\", \"expired_api_key\", \"ip_not_allowed\", \"insufficient_scope\", \"recipient_not_open\", \"recipient_opted_out\", \"unknown_opt_out\", \"opt_out_of_upstream\", \"invalid_signature\", \"media_url_expired\", \"invalid_media_signature\", \"verification_failed\", \"invalid_parameter\", \"invalid_cursor\", \"invalid_request\", \"invalid_json\", \"not_found\", \"route_not_found\", \"method_not_allowed\", \"erased\", \"unknown_customer\", \"unknown_conversation\", \"request_timeout\", \"body_too_large\", \"storage_quota_exceeded\", \"upload_quota_exceeded\", \"message_limit_reached\", \"unsupported_media_type\", \"waiting_choice_required\", \"secret_in_use\", \"no_signing_key\", \"url_not_verified\", \"url_is_webhook_endpoint\", \"no_operations_url\", \"too_many_endpoints\", \"nothing_to_replay\", \"delivery_settled\", \"attempt_under_way\", \"delivery_not_first\", \"delivery_held\", \"test_event_pending\", \"deliveries_pending\", \"buffer_needs_conversation_order\", \"endpoint_not_enabled\", \"tenant_suspended\", \"scope_not_grantable\", \"unknown_tenant\", \"unknown_waba\", \"unknown_key\", \"unknown_user\", \"user_exists\", \"user_differs\", \"too_many_links\", \"unknown_operations_hook\", \"too_many_operations_hooks\", \"key_differs\", \"external_id_taken\", \"tenant_has_external_id\", \"tenant_in_use\", \"waba_taken\", \"url_not_allowed\", \"unknown_setup_link\", \"too_many_setup_links\", \"signup_not_configured\", \"phone_number_taken\", \"too_many_replays\", \"replay_finished\", \"replay_too_large\", \"invalid_url\", \"unknown_phone_number\", \"unknown_endpoint\", \"unknown_delivery\", \"unknown_media\", \"media_expired\", \"wrong_media_type\", \"unsupported_file_type\", \"file_too_large\", \"invalid_multipart\", \"too_many_uploads\", \"too_many_streams\", \"template_paused\", \"template_disabled\", \"template_variables_wrong\", \"message_not_scheduled\", \"too_many_scheduled\", \"too_many_broadcasts\", \"broadcast_started\", \"broadcast_not_started\", \"broadcast_finished\", \"broadcast_empty\", \"broadcast_too_large\", \"conversation_of_group\", \"message_not_inbound\", \"payment_configuration_required\", \"idempotency_key_in_flight\", \"idempotency_key_reused\", \"upstream_refused\", \"access_token_missing\", \"upstream_unavailable\", \"outcome_unknown\", \"message_not_sent\", \"rate_limit_exceeded\", \"headers_too_large\", \"internal_error\", \"service_unavailable\"] | str"


class NewSetupLink(Model):
    id: str
    state: Literal["open", "started", "authorized", "subscribed", "registered", "done", "failed", "cancelled", "expired", "revoked"] | str
    mode: Literal["signup", "steps"] | str
    """`signup`: the customer consents in upstream’s dialog; `steps`: enters the id of the WABA and an access token."""
    connections: list[Literal["cloud", "coexistence"] | str]
    """`cloud`: the number is registered for the API; `coexistence`: it stays in the WhatsApp Business app too."""
    reconnect_phone_number_id: str | None = Field(alias="reconnectPhoneNumberId")
    failure: SetupFailure | None
    attention: list[Literal["number_in_review", "no_endpoint"] | str]
    """What is not as it should be although the number is connected."""
    waba_id: str | None = Field(alias="wabaId")
    phone_number_id: str | None = Field(alias="phoneNumberId")
    created_at: datetime = Field(alias="createdAt")
    changed_at: datetime = Field(alias="changedAt")
    expires_at: datetime = Field(alias="expiresAt")
    url: str


class OperationEvent(Model):
    id: str
    type: Literal["tenant.created", "tenant.updated", "tenant.suspended", "tenant.resumed", "tenant.removed", "waba.saved", "waba.numbers_changed", "number.connected", "setup_link.done", "setup_link.failed", "setup_link.expired", "waba.removed", "key.created", "key.updated", "key.revoked", "endpoint.created", "endpoint.updated", "endpoint.paused", "endpoint.disabled", "endpoint.enabled", "endpoint.deleted", "user.invited", "user.uninvited", "user.created", "user.updated", "user.disabled", "user.enabled", "user.removed", "portal_session.created", "portal_session.opened", "portal_session.ended", "alert.opened", "alert.resolved", "erasure.done"] | str
    occurred_at: datetime = Field(alias="occurredAt")
    sequence: int
    tenant: OperationEventTenant | None
    waba_id: str | None = Field(alias="wabaId")
    actor: str
    data: dict[str, Any]


class OperationEventList(Model):
    data: list[OperationEvent]
    has_more: bool = Field(alias="hasMore")
    next_cursor: str | None = Field(alias="nextCursor")


class OperationEventTenant(Model):
    user_id: int = Field(alias="userId")
    external_id: str | None = Field(alias="externalId")


class OperationsHook(Model):
    hook_ref: str = Field(alias="hookRef")
    url: str
    """Its server; a hash stands for the rest, which may be secret."""
    types: list[str]
    description: str
    state: Literal["enabled", "disabled"] | str
    disabled_reason: str | None = Field(alias="disabledReason")
    sequence: int
    """Every event up to this one was delivered or is of another type."""
    is_test_pending: bool = Field(alias="isTestPending")
    failing_since: datetime | None = Field(alias="failingSince")
    next_attempt_at: datetime | None = Field(alias="nextAttemptAt")
    last_error: str | None = Field(alias="lastError")
    last_error_at: datetime | None = Field(alias="lastErrorAt")
    last_success_at: datetime | None = Field(alias="lastSuccessAt")
    previous_secret_ends_at: datetime | None = Field(alias="previousSecretEndsAt")
    created_at: datetime = Field(alias="createdAt")


class OperationsHookList(Model):
    data: list[OperationsHook]


class PlatformAuditEntry(Model):
    id: str
    at: datetime
    user_id: int | None = Field(alias="userId")
    waba_id: str | None = Field(alias="wabaId")
    actor: str
    action: str
    target: str
    detail: dict[str, Any]
    request_id: str | None = Field(alias="requestId")
    ip: str | None


class PlatformAuditEntryList(Model):
    data: list[PlatformAuditEntry]
    has_more: bool = Field(alias="hasMore")
    next_cursor: str | None = Field(alias="nextCursor")


class PlatformKey(Model):
    id: str
    name: str
    prefix: str
    last_four: str = Field(alias="lastFour")
    scopes: list[Literal["read", "tenants", "wabas", "keys", "endpoints", "users", "portal_sessions", "setup_links", "usage", "remove"] | str]
    grantable_scopes: list[Literal["read", "read_events", "send", "manage_webhooks", "export", "erase", "graph", "graph_manage", "graph_query"] | str] = Field(alias="grantableScopes")
    allowed_networks: list[str] | None = Field(alias="allowedNetworks")
    created_at: datetime = Field(alias="createdAt")
    expires_at: datetime | None = Field(alias="expiresAt")
    last_used_at: datetime | None = Field(alias="lastUsedAt")


class PlatformWaba(Model):
    waba_id: str = Field(alias="wabaId")
    has_access_token: bool = Field(alias="hasAccessToken")
    phone_numbers: list[PlatformWabaPhoneNumbersItem] = Field(alias="phoneNumbers")


class PlatformWabaPhoneNumbersItem(Model):
    phone_number_id: str = Field(alias="phoneNumberId")
    display_phone_number: str = Field(alias="displayPhoneNumber")
    verified_name: str = Field(alias="verifiedName")
    quality_rating: str | None = Field(alias="qualityRating")


class PortalSession(Model):
    id: str
    url: str
    link_expires_at: datetime = Field(alias="linkExpiresAt")
    session_seconds: int = Field(alias="sessionSeconds")


class RemovedTenant(Model):
    user_id: int = Field(alias="userId")
    waba_ids: list[str] = Field(alias="wabaIds")
    kept: list[str]
    """The WABAs whose history is kept."""


class RemovedWaba(Model):
    waba_id: str = Field(alias="wabaId")
    endpoints: int
    dropped: int
    kept: bool


class RevokedTenantKey(Model):
    id: str
    revoked_at: datetime = Field(alias="revokedAt")
    cancelled_messages: int = Field(alias="cancelledMessages")


class RotatedOperationsHookSecret(Model):
    hook_ref: str = Field(alias="hookRef")
    secret: str
    previous_secret_ends_at: datetime | None = Field(alias="previousSecretEndsAt")


class RotatedTenantKey(Model):
    key_ref: str = Field(alias="keyRef")
    id: str
    name: str
    prefix: str
    last_four: str = Field(alias="lastFour")
    scopes: list[Literal["read", "read_events", "send", "manage_webhooks", "export", "erase", "graph", "graph_manage", "graph_query"] | str]
    allowed_networks: list[str] | None = Field(alias="allowedNetworks")
    state: Literal["active", "expired", "revoked"] | str
    created_at: datetime = Field(alias="createdAt")
    expires_at: datetime | None = Field(alias="expiresAt")
    revoked_at: datetime | None = Field(alias="revokedAt")
    last_used_at: datetime | None = Field(alias="lastUsedAt")
    api_key: str | None = Field(alias="apiKey")
    replaced_key_id: str = Field(alias="replacedKeyId")
    replaced_ends_at: datetime | None = Field(alias="replacedEndsAt")


class SavedOperationsHook(Model):
    hook_ref: str = Field(alias="hookRef")
    url: str
    """Its server; a hash stands for the rest, which may be secret."""
    types: list[str]
    description: str
    state: Literal["enabled", "disabled"] | str
    disabled_reason: str | None = Field(alias="disabledReason")
    sequence: int
    """Every event up to this one was delivered or is of another type."""
    is_test_pending: bool = Field(alias="isTestPending")
    failing_since: datetime | None = Field(alias="failingSince")
    next_attempt_at: datetime | None = Field(alias="nextAttemptAt")
    last_error: str | None = Field(alias="lastError")
    last_error_at: datetime | None = Field(alias="lastErrorAt")
    last_success_at: datetime | None = Field(alias="lastSuccessAt")
    previous_secret_ends_at: datetime | None = Field(alias="previousSecretEndsAt")
    created_at: datetime = Field(alias="createdAt")
    secret: str | None


class SavedTenantUser(Model):
    user_ref: str | None = Field(alias="userRef")
    user_id: str | None = Field(alias="userId")
    email: str
    role: Literal["admin", "member"] | str
    state: Literal["active", "disabled", "invited"] | str
    last_sign_in_at: datetime | None = Field(alias="lastSignInAt")
    invite_ends_at: datetime | None = Field(alias="inviteEndsAt")
    invite_url: str | None = Field(alias="inviteUrl")


class SetupFailure(Model):
    step: str
    """A step of ours, or the step of the dialog at which the customer left it."""
    code: Literal["login_cancelled", "flow_abandoned", "upstream_error", "code_expired", "code_lost", "permission_missing", "no_waba", "no_number", "waba_taken", "number_taken", "subscription_failed", "pin_required", "registration_refused", "registration_rate_limited", "coexistence_sync_late"] | str
    retryable: bool
    """The link goes on from there, or from its beginning, when the customer tries again."""
    message: str
    upstream_code: int | None = Field(alias="upstreamCode")
    retry_at: datetime | None = Field(alias="retryAt")


class SetupLink(Model):
    id: str
    state: Literal["open", "started", "authorized", "subscribed", "registered", "done", "failed", "cancelled", "expired", "revoked"] | str
    mode: Literal["signup", "steps"] | str
    """`signup`: the customer consents in upstream’s dialog; `steps`: enters the id of the WABA and an access token."""
    connections: list[Literal["cloud", "coexistence"] | str]
    """`cloud`: the number is registered for the API; `coexistence`: it stays in the WhatsApp Business app too."""
    reconnect_phone_number_id: str | None = Field(alias="reconnectPhoneNumberId")
    failure: SetupFailure | None
    attention: list[Literal["number_in_review", "no_endpoint"] | str]
    """What is not as it should be although the number is connected."""
    waba_id: str | None = Field(alias="wabaId")
    phone_number_id: str | None = Field(alias="phoneNumberId")
    created_at: datetime = Field(alias="createdAt")
    changed_at: datetime = Field(alias="changedAt")
    expires_at: datetime = Field(alias="expiresAt")


class SetupLinkList(Model):
    data: list[SetupLink]
    has_more: bool = Field(alias="hasMore")
    next_cursor: str | None = Field(alias="nextCursor")


class Tenant(Model):
    external_id: str | None = Field(alias="externalId")
    user_id: int = Field(alias="userId")
    business_name: str = Field(alias="businessName")
    state: Literal["active", "suspended"] | str
    suspend_reason: str | None = Field(alias="suspendReason")
    metadata: dict[str, str]
    """Up to 20 texts of 500 characters by names of 40. Only platform keys see them."""
    usage_alerts: list[UsageAlert] = Field(alias="usageAlerts")
    """Counts at which operators are alerted."""
    wabas: list[PlatformWaba]
    quotas: TenantQuotas
    """What holds for the tenant; null: no limit, no end."""
    usage: TenantUsage
    created_at: datetime = Field(alias="createdAt")
    updated_at: datetime = Field(alias="updatedAt")


class TenantKey(Model):
    key_ref: str = Field(alias="keyRef")
    id: str
    name: str
    prefix: str
    last_four: str = Field(alias="lastFour")
    scopes: list[Literal["read", "read_events", "send", "manage_webhooks", "export", "erase", "graph", "graph_manage", "graph_query"] | str]
    allowed_networks: list[str] | None = Field(alias="allowedNetworks")
    state: Literal["active", "expired", "revoked"] | str
    created_at: datetime = Field(alias="createdAt")
    expires_at: datetime | None = Field(alias="expiresAt")
    revoked_at: datetime | None = Field(alias="revokedAt")
    last_used_at: datetime | None = Field(alias="lastUsedAt")
    api_key: str | None = Field(alias="apiKey")


class TenantList(Model):
    data: list[Tenant]
    has_more: bool = Field(alias="hasMore")
    next_cursor: str | None = Field(alias="nextCursor")


class TenantPolicy(Model):
    message_days: int | None = Field(alias="messageDays")
    media_days: int | None = Field(alias="mediaDays")
    event_days: int | None = Field(alias="eventDays")
    audit_days: int | None = Field(alias="auditDays")
    media_url_ttl_seconds: int | None = Field(alias="mediaUrlTtlSeconds")
    stored_bytes_quota: int | None = Field(alias="storedBytesQuota")
    upload_files_per_day: int | None = Field(alias="uploadFilesPerDay")
    upload_bytes_per_day: int | None = Field(alias="uploadBytesPerDay")


class TenantQuotas(Model):
    """What holds for the tenant; null: no limit, no end."""

    message_days: int | None = Field(alias="messageDays")
    media_days: int | None = Field(alias="mediaDays")
    event_days: int | None = Field(alias="eventDays")
    audit_days: int | None = Field(alias="auditDays")
    media_url_ttl_seconds: int | None = Field(alias="mediaUrlTtlSeconds")
    stored_bytes_quota: int | None = Field(alias="storedBytesQuota")
    upload_files_per_day: int | None = Field(alias="uploadFilesPerDay")
    upload_bytes_per_day: int | None = Field(alias="uploadBytesPerDay")


class TenantUsage(Model):
    stored_bytes: int = Field(alias="storedBytes")
    stored_files: int = Field(alias="storedFiles")
    uploaded_bytes: int = Field(alias="uploadedBytes")
    uploaded_files: int = Field(alias="uploadedFiles")


class TenantUsageAlerts(Model):
    usage_alerts: list[UsageAlert] = Field(alias="usageAlerts")
    """Counts at which operators are alerted."""


class TenantUser(Model):
    user_ref: str | None = Field(alias="userRef")
    user_id: str | None = Field(alias="userId")
    email: str
    role: Literal["admin", "member"] | str
    state: Literal["active", "disabled", "invited"] | str
    last_sign_in_at: datetime | None = Field(alias="lastSignInAt")
    invite_ends_at: datetime | None = Field(alias="inviteEndsAt")


class TenantUserList(Model):
    data: list[TenantUser]


class UsageAlert(Model):
    metric: Literal["sent", "delivered", "read", "failed", "billable", "received"] | str
    """The count, as in `GET /api/platform/usage/messages`."""
    period: Literal["day", "month"] | str
    """A UTC day or month."""
    threshold: int


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


class WebhookEndpointPublicKeysItem(Model):
    public_key: str = Field(alias="publicKey")
    expires_at: datetime | None = Field(alias="expiresAt")
