"""Receives webhooks with Django: each is handled once, and confirmed after the commit."""

import os

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from heliograph import Webhook, WebhookEvent, WebhookVerificationError

from .models import Handled, Seen

webhook = Webhook(os.environ["HELIOGRAPH_WEBHOOK_SECRET"])


@csrf_exempt  # The signature says who it is.
@require_POST
def receive(request: HttpRequest) -> HttpResponse:
    try:
        event = webhook.verify(request.body, request.headers)
    except WebhookVerificationError as error:
        return HttpResponse(str(error), status=401)
    webhook_id = request.headers["webhook-id"]
    with transaction.atomic():  # The id and the work, or neither.
        _, is_new = Seen.objects.get_or_create(webhook_id=webhook_id)
        if is_new:
            handle(webhook_id, event)
    return HttpResponse(status=204)


def handle(webhook_id: str, event: WebhookEvent) -> None:
    """Your own work. What takes longer is a row here, for a worker of yours."""
    Handled.objects.create(webhook_id=webhook_id, event_type=event.event_type, event_id=event.event_id)
