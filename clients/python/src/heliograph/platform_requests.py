"""Types of the bodies of requests to the platform API."""

from .generated.platform.requests import *  # noqa: F403
