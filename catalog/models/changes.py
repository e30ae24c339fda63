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
    """One change. Written in the transaction of the change itself, signed a moment later, never edited."""

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
    seal_number = models.PositiveBigIntegerField(null=True, blank=True, unique=True)
    seal = models.CharField(max_length=64, blank=True, default="", db_default="")

    class Meta:
        ordering = ["-at", "-pk"]
        indexes = [
            models.Index(fields=["id"], condition=models.Q(seal_number=None), name="change_unsealed"),
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


class LastSeal(models.Model):
    """A single row: number and signature of the last signed change. Its lock orders the signers.

    Columns and tables keep the word `seal` of the migration that added them: a seal is a signature.
    """

    number = models.PositiveBigIntegerField(default=0)
    seal = models.CharField(max_length=64, blank=True, default="")
    end = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(pk=1), name="last_seal_is_one_row")]

    def __str__(self) -> str:
        return f"{self.number} {self.seal}"
