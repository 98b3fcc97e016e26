"""Types of responses of the platform API."""

from .generated_platform.models import *  # noqa: F403
