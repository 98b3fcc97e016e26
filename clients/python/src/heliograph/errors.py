"""Errors that responses of the service are raised as."""

import json
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

__all__ = ["HeliographError"]


class HeliographError(Exception):
    """A response that is an error. Without any response, the exception is one of httpx (`httpx.TransportError`)."""

    status: int
    """HTTP status."""
    code: str
    """What programs tell errors apart by; `unknown` when something between you and the service responded."""
    details: dict[str, Any] | None
    """The error as it came: `param`, `docUrl`, `upstream`, `advice` …; None when it is not the service's."""
    request_id: str | None
    """Names the request to the operator."""
    retry_after_seconds: float | None
    """How long to wait before another attempt, when the response says so."""

    def __init__(self, response: httpx.Response) -> None:
        self.status = response.status_code
        self.details = _details_of(response)
        details = self.details or {}
        self.code = str(details.get("code", "unknown"))
        self.request_id = details.get("requestId") or response.headers.get("x-request-id")
        self.retry_after_seconds = retry_after_seconds(response)
        message = f"{self.code}: {details['message']}" if "message" in details else f"HTTP {self.status}"
        super().__init__(message if self.request_id is None else f"{message} ({self.request_id})")


def _details_of(response: httpx.Response) -> dict[str, Any] | None:
    try:
        details = json.loads(response.content)["error"]
    except (ValueError, KeyError, TypeError):
        return None
    return details if isinstance(details, dict) and isinstance(details.get("code"), str) else None


def retry_after_seconds(response: httpx.Response) -> float | None:
    """`Retry-After`, in seconds or as a date of HTTP; None when it is missing or makes no sense."""
    text = response.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    zoned = at if at.tzinfo is not None else at.replace(tzinfo=timezone.utc)
    return max(0.0, (zoned - datetime.now(timezone.utc)).total_seconds())
