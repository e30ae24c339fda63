"""Servers: where tools come from, and the record of each refresh."""

from datetime import datetime

from django.db import models
from django.db.models import Q
from django.urls import reverse

from catalog.domain.choices import Kind, Transport
from catalog.domain.connection import SIGN_IN_CODES
from catalog.domain.server_names import write_address
from catalog.models.constraints import labelled, one_of

MAX_TITLE_CHARS = 200
MAX_VERSION_CHARS = 100
MAX_PROTOCOL_CHARS = 40


class Status(models.TextChoices):
    """Derived from the row, never stored."""

    OK = "ok", "Up to date"
    WAITING = "waiting", "Not refreshed yet"
    SIGN_IN_NEEDED = "sign_in_needed", "Sign-in needed"
    FAILING = "failing", "Failing"
    DISABLED = "disabled", "Disabled"


_NEEDS_SIGN_IN = Q(last_error_code__in=SIGN_IN_CODES)
_STATUSES = {
    Status.DISABLED: Q(enabled=False),
    Status.SIGN_IN_NEEDED: _NEEDS_SIGN_IN & Q(enabled=True, failures__gt=0),
    Status.FAILING: ~_NEEDS_SIGN_IN & Q(enabled=True, failures__gt=0),
    Status.WAITING: Q(enabled=True, failures=0, last_refreshed_at=None),
    Status.OK: Q(enabled=True, failures=0, last_refreshed_at__isnull=False),
}


class ServerQuerySet(models.QuerySet["Server"]):
    def of_status(self, status: Status) -> "ServerQuerySet":
        """Servers whose row has this status."""
        return self.filter(_STATUSES[status])

    def refreshable(self) -> "ServerQuerySet":
        """Servers that can be asked for their tools; a snapshot was given as a file."""
        return self.filter(enabled=True).exclude(transport=Transport.SNAPSHOT)

    def due(self, *, now: datetime) -> "ServerQuerySet":
        return self.refreshable().filter(next_refresh_at__lte=now)


class Server(models.Model):
    name = models.CharField(max_length=100, unique=True)
    kind = models.CharField(max_length=8, choices=labelled(Kind), default=Kind.MCP)
    transport = models.CharField(max_length=8, choices=labelled(Transport))
    enabled = models.BooleanField(default=True)
    defer_loading = models.BooleanField(null=True, blank=True)
    demo = models.BooleanField(
        default=False, db_default=False, help_text="Came with the demo, and goes with it."
    )

    keeps_no_state = models.BooleanField(
        default=False, db_default=False, help_text="Keys may share one connection of the gateway to it."
    )

    command = models.CharField(max_length=1000, blank=True)
    url = models.CharField(
        max_length=2000, blank=True, help_text="Without its query, which may hold a secret."
    )
    sealed = models.TextField(blank=True, help_text="Encrypted args, env, headers and URL query.")

    title = models.CharField(max_length=MAX_TITLE_CHARS, blank=True)
    description = models.TextField(blank=True)
    instructions = models.TextField(blank=True)
    version = models.CharField(max_length=MAX_VERSION_CHARS, blank=True)
    protocol_version = models.CharField(max_length=MAX_PROTOCOL_CHARS, blank=True)

    refresh_interval_seconds = models.PositiveIntegerField(default=3600)
    next_refresh_at = models.DateTimeField(null=True, blank=True)
    last_refreshed_at = models.DateTimeField(
        null=True, blank=True, help_text="The last refresh that succeeded."
    )
    stale_since = models.DateTimeField(null=True, blank=True, help_text="The first failure after a success.")
    failures = models.PositiveIntegerField(default=0, help_text="Refreshes that failed in a row.")
    last_error_code = models.CharField(max_length=40, blank=True)
    last_error = models.TextField(blank=True)
    stderr_tail = models.TextField(blank=True)

    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = ServerQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        indexes = [models.Index(fields=["enabled", "next_refresh_at"], name="server_due")]
        constraints = [
            one_of("kind", Kind, table="server"),
            one_of("transport", Transport, table="server"),
            models.CheckConstraint(condition=~Q(name=""), name="server_has_a_name"),
            models.CheckConstraint(
                condition=(
                    Q(transport=Transport.STDIO, url="") & ~Q(command="")
                    | Q(transport__in=[Transport.HTTP, Transport.SSE], command="") & ~Q(url="")
                    | Q(transport=Transport.SNAPSHOT, command="", url="", sealed="")
                ),
                name="server_address_fits_its_transport",
            ),
            models.CheckConstraint(
                condition=Q(refresh_interval_seconds__gte=10), name="server_refresh_interval_at_least_10_s"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("server_detail", args=[self.address])

    @property
    def address(self) -> str:
        """The server in URLs: its name, or `~` and its id where the name cannot be in a URL."""
        return write_address(self.name, self.pk)

    @property
    def status(self) -> Status:
        if not self.enabled:
            return Status.DISABLED
        if self.failures:
            needs_sign_in = self.last_error_code in SIGN_IN_CODES
            return Status.SIGN_IN_NEEDED if needs_sign_in else Status.FAILING
        if self.last_refreshed_at is None:
            return Status.WAITING
        return Status.OK

    @property
    def is_snapshot(self) -> bool:
        return self.transport == Transport.SNAPSHOT


class ServerFeatures(models.Model):
    """What a server offers beside its tools, as the last refresh listed it, in MCP's form."""

    server = models.OneToOneField(Server, on_delete=models.CASCADE, primary_key=True, related_name="features")
    resources = models.JSONField(default=list)
    templates = models.JSONField(default=list)
    prompts = models.JSONField(default=list)
    completions = models.BooleanField(default=False, help_text="Whether it completes arguments.")

    def __str__(self) -> str:
        return f"{self.server_id}: {len(self.resources)} resources, {len(self.prompts)} prompts"


class RefreshRun(models.Model):
    """The result of one attempt to refresh a server. Written once, when the attempt ends."""

    server = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="runs")
    job = models.ForeignKey("catalog.Job", on_delete=models.SET_NULL, null=True, related_name="runs")
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField()
    added = models.PositiveIntegerField(default=0)
    changed = models.PositiveIntegerField(default=0)
    gone = models.PositiveIntegerField(default=0)
    unchanged = models.PositiveIntegerField(default=0)
    rejected = models.JSONField(default=list, help_text="The first definitions kept out: name and why.")
    rejected_more = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Definitions kept out beside those."
    )
    error_code = models.CharField(max_length=40, blank=True)
    error = models.TextField(blank=True)
    stderr_tail = models.TextField(blank=True)

    class Meta:
        ordering = ["-finished_at", "-pk"]
        indexes = [
            models.Index(fields=["server", "-finished_at"], name="run_of_server"),
            models.Index(fields=["finished_at"], name="run_age"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(finished_at__gte=models.F("started_at")), name="run_ends_after_it_starts"
            )
        ]

    def __str__(self) -> str:
        return f"{self.server_id} at {self.finished_at:%Y-%m-%d %H:%M:%S}"

    @property
    def is_ok(self) -> bool:
        return not self.error_code

    @property
    def rejected_count(self) -> int:
        return len(self.rejected) + self.rejected_more
