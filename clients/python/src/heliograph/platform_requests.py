"""Types of the bodies of requests to the platform API."""

from .generated_platform.requests import *  # noqa: F403
