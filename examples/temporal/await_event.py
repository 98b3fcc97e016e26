"""Awaits webhooks of Heliograph in a workflow of Temporal: each event once, in order."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from temporalio import workflow

MOST_SEEN = 1_000


@dataclass
class ReceivedEvent:
    """What the receiver takes from a webhook."""

    webhook_id: str
    """The header webhook-id: the same for each retry and replay of an event."""
    delivery_id: str
    """The header X-Service-Delivery-Id: a replay has another one."""
    event_type: str
    event_id: str
    text: str


@dataclass
class State:
    seen: list[str] = field(default_factory=list)
    waiting: list[ReceivedEvent] = field(default_factory=list)
    confirmed: list[str] = field(default_factory=list)


@workflow.defn(name="customer")
class Customer:
    """One workflow per customer, which lives on: an order counts once "yes" follows within an hour."""

    @workflow.init
    def __init__(self, state: State | None = None) -> None:
        self.state = state or State()

    @workflow.signal(name="eventReceived")
    def event_received(self, event: ReceivedEvent) -> None:
        # With replays as events of their own, compare event_id and delivery_id instead.
        if event.webhook_id in self.state.seen:
            return
        self.state.seen = [*self.state.seen, event.webhook_id][-MOST_SEEN:]
        self.state.waiting.append(event)

    @workflow.query(name="confirmedOrders")
    def confirmed_orders(self) -> list[str]:
        return self.state.confirmed

    async def await_event(
        self, fits: Callable[[ReceivedEvent], bool], timeout: timedelta
    ) -> ReceivedEvent | None:
        """The first event that fits, or None when the time is up."""
        waiting = self.state.waiting
        try:
            await workflow.wait_condition(lambda: any(map(fits, waiting)), timeout=timeout)
        except asyncio.TimeoutError:
            return None
        return waiting.pop(next(i for i, event in enumerate(waiting) if fits(event)))

    @workflow.run
    async def run(self, state: State | None = None) -> None:
        while not workflow.info().is_continue_as_new_suggested():
            order = await self.await_event(lambda e: e.text.startswith("order "), timedelta(days=1))
            if order is None:
                continue
            reply = await self.await_event(lambda e: e.text in ("yes", "no"), timedelta(hours=1))
            if reply is not None and reply.text == "yes":
                self.state.confirmed.append(order.text)
        workflow.continue_as_new(self.state)
