"""What the receiver needs of a project; take it into yours."""

import os

SECRET_KEY = os.environ.get("DJANGO_SECRET_KEY") or os.urandom(32).hex()
ALLOWED_HOSTS = ["*"]
INSTALLED_APPS = ["inbox"]
ROOT_URLCONF = "urls"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# Webhooks have up to 8 MiB; Django's own limit is 2.5 MiB.
DATA_UPLOAD_MAX_MEMORY_SIZE = 8 * 1024 * 1024
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ["DATABASE"],
        "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 10},
    }
}
