"""Types of responses and events."""

from .generated.models import *  # noqa: F403
