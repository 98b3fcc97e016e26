# Made by `npm run client` from the OpenAPI document. Do not edit it.
"""Bodies of requests."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypeAlias

from typing_extensions import NotRequired, TypedDict


class BrandInput(TypedDict):
    name: NotRequired[str | None]
    accentColor: NotRequired[str | None]
    logo: NotRequired[str | None]


class NewWebhookEndpoint(TypedDict):
    url: str
    description: NotRequired[str | None]
    eventTypes: NotRequired[list[Literal["message", "status", "payment", "order", "media.ready", "test", "window.closing", "preference"] | str] | None]
    phoneNumberIds: NotRequired[list[str] | None]
    filter: NotRequired[list[str] | None]
    format: NotRequired[Literal["heliograph", "meta"] | None]
    windowClosingMinutes: NotRequired[int | None]
    customHeaders: NotRequired[dict[str, str | None] | None]
    appSecret: NotRequired[str]
    """For the format `meta`: the secret of `X-Hub-Signature-256`, a text of at least 16 characters. Without it, one is generated."""
    verifyToken: NotRequired[str]
    """For the format `meta`: the URL is verified with this token first, as the upstream platform does it (`hub.challenge`). It is not stored."""
    retryScheduleSeconds: NotRequired[list[int] | None]
    timeoutMs: NotRequired[int | None]
    asymmetricSignature: NotRequired[Literal["none", "ed25519"] | None]
    maxInFlight: NotRequired[int | None]
    rateLimitPerSecond: NotRequired[int | None]
    blockLimitSeconds: NotRequired[int | None]
    deliveryWorkflows: NotRequired[Literal["auto", "always"] | None]
    alwaysWorkflowsFor: NotRequired[list[Literal["message", "status", "payment", "order", "media.ready", "test", "window.closing", "preference"] | str] | None]
    orderScope: NotRequired[Literal["event", "conversation", "endpoint"] | None]
    bufferSeconds: NotRequired[int | None]
    bufferMaxSeconds: NotRequired[int | None]
    bufferMaxMessages: NotRequired[int | None]
    bufferTypes: NotRequired[list[Literal["text", "image", "video", "audio", "document", "sticker", "location", "contacts", "button", "interactive", "reaction"]] | None]


class OperationsHookInput(TypedDict):
    url: str
    types: NotRequired[list[str]]
    """Types of events; `tenant.*` is all that begin with `tenant.`, `*` is all."""
    description: NotRequired[str]
    state: NotRequired[Literal["enabled", "disabled"]]


class OperationsHookRotation(TypedDict):
    overlapHours: int


class PortalSessionInput(TypedDict):
    user: PortalSessionInputUser
    role: Literal["admin", "member"]
    capabilities: NotRequired[list[Literal["view", "view_events", "view_conversations", "manage_endpoints", "reveal_secrets", "retry", "request_keys", "alerts", "audit"]]]
    wabaIds: NotRequired[list[str]]
    page: NotRequired[Literal["overview", "endpoints", "deliveries", "replays", "conversations", "event-types", "keys", "audit"]]
    sessionSeconds: NotRequired[int]
    returnUrl: NotRequired[str]
    refreshUrl: NotRequired[str]
    embed: NotRequired[PortalSessionInputEmbed]


class PortalSessionInputEmbed(TypedDict):
    origin: str


class PortalSessionInputUser(TypedDict):
    externalId: str
    email: str
    name: NotRequired[str]
    mfa: NotRequired[bool]


class SetupLinkInput(TypedDict):
    successUrl: str
    failureUrl: str
    mode: NotRequired[Literal["signup", "steps"]]
    """`signup`: the customer consents in upstream’s dialog; `steps`: enters the id of the WABA and an access token."""
    connections: NotRequired[list[Literal["cloud", "coexistence"]]]
    """`cloud`: the number is registered for the API; `coexistence`: it stays in the WhatsApp Business app too."""
    reconnectPhoneNumberId: NotRequired[str]
    expiresInHours: NotRequired[int]
    state: NotRequired[str]
    """Anything: it comes back with the customer, in `state`."""


class TenantChange(TypedDict):
    businessName: NotRequired[str]
    state: NotRequired[Literal["active", "suspended"]]
    suspendReason: NotRequired[str]
    newExternalId: NotRequired[str]


class TenantInput(TypedDict):
    businessName: str
    metadata: NotRequired[dict[str, str]]
    """Up to 20 texts of 500 characters by names of 40. Only platform keys see them."""
    userId: NotRequired[int]


class TenantKeyInput(TypedDict):
    name: str
    scopes: list[Literal["read", "read_events", "send", "manage_webhooks", "export", "erase", "graph", "graph_manage", "graph_query"]]
    expiresAt: NotRequired[datetime | str]
    allowedNetworks: NotRequired[list[str]]


class TenantKeyRotation(TypedDict):
    overlapHours: int


class TenantPolicyInput(TypedDict):
    messageDays: NotRequired[int | None]
    mediaDays: NotRequired[int | None]
    eventDays: NotRequired[int | None]
    auditDays: NotRequired[int | None]
    mediaUrlTtlSeconds: NotRequired[int | None]
    storedBytesQuota: NotRequired[int | None]
    uploadFilesPerDay: NotRequired[int | None]
    uploadBytesPerDay: NotRequired[int | None]


class TenantRemoval(TypedDict):
    confirm: str


class TenantUserInput(TypedDict):
    email: str
    role: Literal["admin", "member"]


class UsageAlertInput(TypedDict):
    metric: Literal["sent", "delivered", "read", "failed", "billable", "received"]
    """The count, as in `GET /api/platform/usage/messages`."""
    period: Literal["day", "month"]
    """A UTC day or month."""
    threshold: int | None


class WabaInput(TypedDict):
    accessToken: NotRequired[str]
    """Of a system user. It is stored encrypted."""
    phoneNumbers: NotRequired[list[WabaInputPhoneNumbersItem]]
    lookUpNumbers: NotRequired[bool]


class WabaInputPhoneNumbersItem(TypedDict):
    phoneNumberId: str
    displayPhoneNumber: NotRequired[str]
    verifiedName: NotRequired[str]
