"""Makes requests without blocking the event loop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar

import httpx

from ._request import Call, Connection, Page, Parse, QueryValue, wait_or_raise

T = TypeVar("T")


class AsyncCore:
    """What the generated methods call."""

    def __init__(self, connection: Connection, http_client: httpx.AsyncClient) -> None:
        self._connection = connection
        self._http = http_client

    @asynccontextmanager
    async def _open(self, call: Call) -> AsyncIterator[httpx.Response]:
        """A response of success, whose body is not read yet."""
        attempts = self._connection.attempts(call)
        while True:
            try:
                response = await self._http.send(self._connection.build(self._http, call), stream=True)
            except httpx.TransportError as error:
                wait_seconds = attempts.wait_after(error)
                if wait_seconds is None:
                    raise
            else:
                try:
                    if response.is_success:
                        yield response
                        return
                    await response.aread()
                finally:
                    await response.aclose()
                wait_seconds = wait_or_raise(attempts, response)
            await asyncio.sleep(wait_seconds)

    async def _call(
        self,
        parse: Parse[T],
        method: str,
        path: str,
        *,
        query: Mapping[str, QueryValue] | None = None,
        body: object = None,
        idempotency_key: str | None = None,
        is_safe: bool = False,
    ) -> T:
        headers = {} if idempotency_key is None else {"idempotency-key": idempotency_key}
        call = Call(method, path, query=query or {}, body=body, headers=headers, is_safe=is_safe)
        return parse(await self._content(call))

    async def _content(self, call: Call) -> bytes:
        """The whole body; it is asked for again when the connection ends within it."""
        attempts = self._connection.attempts(call)
        while True:
            try:
                response = await self._http.send(self._connection.build(self._http, call))
            except httpx.TransportError as error:
                wait_seconds = attempts.wait_after(error)
                if wait_seconds is None:
                    raise
            else:
                if response.is_success:
                    return response.content
                wait_seconds = wait_or_raise(attempts, response)
            await asyncio.sleep(wait_seconds)

    async def _pages(
        self, page_at: Callable[[str | None], Awaitable[Page[T]]], cursor: str | None
    ) -> AsyncIterator[T]:
        while True:
            page = await page_at(cursor)
            for item in page.data:
                yield item
            cursor = page.next_cursor
            if not page.has_more or cursor is None:
                return
