"""Tables shared by all nodes: heartbeats, leases and sign-in attempts; and what people dismissed."""

from django.conf import settings
from django.db import models


class Node(models.Model):
    """One running `up` or `run_node`. It writes its heartbeat every few seconds."""

    name = models.CharField(max_length=100, primary_key=True)
    roles = models.CharField(max_length=60, help_text="What it runs: web, worker, scheduler.")
    version = models.CharField(max_length=40)
    pid = models.PositiveIntegerField()
    index_version = models.BigIntegerField(
        null=True, help_text="The catalog's version that its search index follows; null where it has none."
    )
    index_behind = models.PositiveBigIntegerField(
        null=True, help_text="By how many versions its index was behind when it last told of itself."
    )
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return f"{self.name} ({self.roles})"

    @property
    def host(self) -> str:
        return self.name.partition("/")[0]


class Lease(models.Model):
    """The right to do a task that only one program does at a time. It expires unless its holder renews it."""

    name = models.CharField(max_length=40, primary_key=True)
    holder = models.CharField(max_length=150)
    held_until = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name}: {self.holder}"


class SignInCount(models.Model):
    """Counted sign-in attempts of a user name, an address or both, in the current window."""

    key = models.CharField(max_length=64, primary_key=True, help_text="A keyed hash: no name is kept.")
    attempts = models.PositiveIntegerField(default=0)
    ends_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.attempts} until {self.ends_at:%H:%M:%S}"


class DismissedStep(models.Model):
    """A first step that a person wants to see no more. It is theirs alone: others still see it."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    step = models.CharField(max_length=20)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "step"], name="step_is_dismissed_once")]

    def __str__(self) -> str:
        return f"{self.user_id} {self.step}"
