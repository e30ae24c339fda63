"""The change record: who changed what, when, from what, to what."""

from django.conf import settings
from django.db import models

from catalog.models.constraints import one_of


class Subject(models.TextChoices):
    SERVER = "server", "Server"
    TOOL = "tool", "Tool"
    POLICY = "policy", "Policy"
    QUERY = "query", "Saved query"
    MODEL = "model", "Model"
    KEY = "key", "Key"
    USER = "user", "User"
    SESSION = "session", "Session"


class Action(models.TextChoices):
    CREATED = "created", "Created"
    CHANGED = "changed", "Changed"
    DELETED = "deleted", "Deleted"


class Change(models.Model):
    """Written in the transaction of the change itself, and never edited."""

    at = models.DateTimeField(auto_now_add=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    actor = models.CharField(max_length=200, help_text="Who, in words that outlive the account.")
    subject = models.CharField(max_length=8, choices=Subject)
    name = models.CharField(max_length=255)
    action = models.CharField(max_length=8, choices=Action)
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)

    class Meta:
        ordering = ["-at", "-pk"]
        indexes = [
            models.Index(fields=["-at", "-id"], name="change_by_time"),
            models.Index(fields=["subject", "name", "-at"], name="change_of_subject"),
            models.Index(fields=["actor", "-at"], name="change_by_actor"),
        ]
        constraints = [
            one_of("subject", Subject, table="change"),
            one_of("action", Action, table="change"),
            models.CheckConstraint(condition=~models.Q(actor=""), name="change_has_an_actor"),
        ]

    def __str__(self) -> str:
        return f"{self.actor} {self.action} {self.subject} {self.name}"
