"""Types of responses of the platform API."""

from .generated.platform.models import *  # noqa: F403
