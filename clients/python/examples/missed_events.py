"""Reads the events of the last day, the oldest first, then those that come: asyncio."""

import asyncio
import os
from datetime import datetime, timedelta, timezone

from heliograph import AsyncHeliograph, MessageEvent, StatusEvent, parse_event


async def main() -> None:
    yesterday = datetime.now(timezone.utc) - timedelta(days=1)
    async with AsyncHeliograph(os.environ["HELIOGRAPH_URL"], os.environ["HELIOGRAPH_API_KEY"]) as heliograph:
        async for stored in heliograph.iter_events(order="asc", since=yesterday, limit=100):
            match parse_event(stored.body):
                case MessageEvent() as event:
                    print("message", event.data.message["id"])
                case StatusEvent() as event:
                    print("status", event.data.status["status"])
                case other:
                    print("other", other.event_type)
        print("live", flush=True)
        async for live in heliograph.stream_events(types=["message"]):
            print(live.event_type, live.event_id, live.cursor, flush=True)


asyncio.run(main())
