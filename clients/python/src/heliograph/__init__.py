"""Typed client for Heliograph's External API and its webhooks."""

from ._async_client import AsyncHeliograph, AsyncHeliographPlatform
from ._sync_client import Heliograph, HeliographPlatform
from .errors import HeliographError
from . import models, requests
from .generated.models import (
    MediaReadyEvent,
    MessageBatchEvent,
    MessageEvent,
    OrderEvent,
    PaymentEvent,
    PreferenceEvent,
    StatusEvent,
    TestEvent,
    UpstreamEvent,
    WindowClosingEvent,
)
from .retries import RetryPolicy
from .streams import StreamedEvent
from .webhooks import UnknownEvent, Webhook, WebhookEvent, WebhookVerificationError, parse_event

__all__ = [
    "AsyncHeliograph",
    "AsyncHeliographPlatform",
    "Heliograph",
    "HeliographError",
    "HeliographPlatform",
    "MediaReadyEvent",
    "MessageBatchEvent",
    "MessageEvent",
    "OrderEvent",
    "PaymentEvent",
    "PreferenceEvent",
    "RetryPolicy",
    "StatusEvent",
    "StreamedEvent",
    "TestEvent",
    "UnknownEvent",
    "UpstreamEvent",
    "Webhook",
    "WebhookEvent",
    "WebhookVerificationError",
    "WindowClosingEvent",
    "models",
    "parse_event",
    "requests",
]
