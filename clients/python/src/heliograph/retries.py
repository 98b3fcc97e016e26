"""When a request is made again, and how long that takes."""

import random
from dataclasses import dataclass

import httpx

from .errors import HeliographError

__all__ = ["RetryPolicy"]

_TEMPORARY = frozenset({408, 429, 500, 502, 503, 504})
# Nothing was sent: any request can be made again.
_NOT_CONNECTED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
# The request itself is wrong.
_NOT_WRITTEN = (httpx.LocalProtocolError, httpx.UnsupportedProtocol)


@dataclass(frozen=True)
class RetryPolicy:
    """Requests that can be repeated without harm are: reads, and sends, which have an `Idempotency-Key`.

    The waits double from the first to the longest, each shortened by up to half at random. `Retry-After` is honoured;
    where it asks for more than the longest wait, the error is raised instead.
    """

    max_retries: int = 3
    first_wait_seconds: float = 0.5
    longest_wait_seconds: float = 30.0

    def wait_seconds(self, retry: int, asked_seconds: float | None = None) -> float | None:
        """The wait before a retry, counted from 0; None when there is none."""
        if retry >= self.max_retries:
            return None
        if asked_seconds is not None and asked_seconds > self.longest_wait_seconds:
            return None
        backoff = min(self.longest_wait_seconds, self.first_wait_seconds * 2.0**retry)
        return max(asked_seconds or 0.0, backoff * random.uniform(0.5, 1.0))


class Attempts:
    """The attempts of one request."""

    def __init__(self, policy: RetryPolicy, *, is_safe: bool) -> None:
        self._policy = policy
        self._is_safe = is_safe
        self._retries = 0

    def wait_after(self, failure: httpx.TransportError | HeliographError, *, is_final: bool = False) -> float | None:
        """How long to wait before the next attempt; None when there is none and the failure is the caller's."""
        if is_final or not self._can_repeat(failure):
            return None
        asked_seconds = failure.retry_after_seconds if isinstance(failure, HeliographError) else None
        wait_seconds = self._policy.wait_seconds(self._retries, asked_seconds)
        self._retries += 1
        return wait_seconds

    def start_again(self) -> None:
        """Counts from 0 again, because an attempt was good for something."""
        self._retries = 0

    def _can_repeat(self, failure: httpx.TransportError | HeliographError) -> bool:
        if isinstance(failure, HeliographError):
            is_temporary = failure.status in _TEMPORARY or failure.code == "idempotency_key_in_flight"
            return self._is_safe and is_temporary
        if isinstance(failure, _NOT_WRITTEN):
            return False
        return self._is_safe or isinstance(failure, _NOT_CONNECTED)


def is_repeated_response(response: httpx.Response) -> bool:
    """Whether the response is the first one to an `Idempotency-Key` again: another attempt would not change it."""
    return bool(response.headers.get("idempotent-replayed") == "true")
