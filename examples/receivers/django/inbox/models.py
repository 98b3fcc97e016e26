from django.db import models


class Seen(models.Model):
    webhook_id = models.CharField(max_length=64, primary_key=True)

    class Meta:
        db_table = "seen"


class Handled(models.Model):
    webhook_id = models.CharField(max_length=64)
    event_type = models.CharField(max_length=80)
    event_id = models.TextField()

    class Meta:
        db_table = "handled"
