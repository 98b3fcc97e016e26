"""A service that answers from memory."""

from collections.abc import Callable

import httpx
import pytest

from heliograph import AsyncHeliograph, Heliograph, RetryPolicy

Answer = httpx.Response | Exception


class Service:
    """Gives the responses that a test lists, one per request, and keeps the requests."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []
        self.answers: list[Answer] = []

    def respond(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


NO_WAIT = RetryPolicy(max_retries=3, first_wait_seconds=0.0, longest_wait_seconds=2.0)


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def client(service: Service) -> Heliograph:
    http = httpx.Client(transport=httpx.MockTransport(service.respond))
    return Heliograph("https://gateway.example/", "ck_1", retry=NO_WAIT, http_client=http)


@pytest.fixture
def make_async_client(service: Service) -> Callable[[], AsyncHeliograph]:
    def make() -> AsyncHeliograph:
        http = httpx.AsyncClient(transport=httpx.MockTransport(service.respond))
        return AsyncHeliograph("https://gateway.example", "ck_1", retry=NO_WAIT, http_client=http)

    return make
