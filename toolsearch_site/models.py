"""What nodes know of each other: who is there, and who may do what only one does at a time."""

from django.db import models


class Node(models.Model):
    """One program group as an operator started it. It tells of itself every few seconds."""

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
    """Something only one program does at a time. Its holder renews it, or loses it when it ends."""

    name = models.CharField(max_length=40, primary_key=True)
    holder = models.CharField(max_length=150)
    held_until = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name}: {self.holder}"


class SignInCount(models.Model):
    """Attempts to sign in that may be guesses: of a user, of an address or of both, in the present window."""

    key = models.CharField(max_length=64, primary_key=True, help_text="A keyed hash: no name is kept.")
    attempts = models.PositiveIntegerField(default=0)
    ends_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.attempts} until {self.ends_at:%H:%M:%S}"
