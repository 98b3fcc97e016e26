"""Types of the bodies of requests."""

from .generated.requests import *  # noqa: F403
