"""Calls through the gateway, and what its processes are doing."""

import uuid

from django.db import models

from catalog.models import ApiKey, Server
from catalog.models.constraints import one_of

MAX_NAME_CHARS = 100
MAX_REVISION_CHARS = 20
MAX_PROCESS_CHARS = 80
MAX_HANDLE_CHARS = 43


class Via(models.TextChoices):
    """How a tool was called: through one of the gateway's own tools, or by its name."""

    CALL_TOOL = "call_tool", "call_tool"
    CALL_READ_TOOL = "call_read_tool", "call_read_tool"
    DIRECT = "direct", "Directly"


class CallOutcome(models.TextChoices):
    OK = "ok", "OK"
    TOOL_ERROR = "tool_error", "Tool error"
    REFUSED = "refused", "Refused"
    TIMEOUT = "timeout", "Timed out"
    CANCELLED = "cancelled", "Cancelled"
    UPSTREAM_FAILED = "upstream_failed", "Server failed"


class Call(models.Model):
    """One call of a tool through the gateway. Names are kept as they were."""

    at = models.DateTimeField(help_text="When it began.")
    key = models.ForeignKey(ApiKey, on_delete=models.SET_NULL, null=True, related_name="calls")
    key_name = models.CharField(max_length=100)
    session_id = models.UUIDField(null=True, help_text="Of a session that may have ended.")
    policy = models.CharField(max_length=64)
    client = models.CharField(max_length=MAX_NAME_CHARS, blank=True, help_text="As it named itself.")
    revision = models.CharField(max_length=MAX_REVISION_CHARS, blank=True)
    server = models.CharField(max_length=100)
    tool = models.CharField(max_length=64, help_text="Qualified name.")
    via = models.CharField(max_length=14, choices=Via)
    outcome = models.CharField(max_length=15, choices=CallOutcome)
    duration_ms = models.PositiveIntegerField()
    upstream_ms = models.PositiveIntegerField(null=True, help_text="Unset where the server was not asked.")
    request_bytes = models.PositiveIntegerField(default=0)
    result_bytes = models.PositiveIntegerField(default=0)
    is_cut = models.BooleanField(default=False)
    error = models.TextField(blank=True)
    arguments = models.TextField(blank=True, help_text="Where the policy records calls in full; masked.")
    result = models.TextField(blank=True, help_text="Likewise.")

    class Meta:
        ordering = ["-at", "-pk"]
        indexes = [
            models.Index(fields=["-at", "-id"], name="call_by_time"),
            models.Index(fields=["key", "-at", "-id"], name="call_of_key"),
            models.Index(fields=["server", "-at", "-id"], name="call_of_server"),
            models.Index(fields=["tool", "-at", "-id"], name="call_of_tool"),
            models.Index(fields=["outcome", "-at", "-id"], name="call_by_outcome"),
            models.Index(fields=["session_id", "-at"], name="call_of_session"),
        ]
        constraints = [one_of("via", Via, table="call"), one_of("outcome", CallOutcome, table="call")]

    def __str__(self) -> str:
        return f"{self.tool} {self.outcome}"


class KeptResult(models.Model):
    """The whole text of a result that was cut, for its key to read on, for some minutes."""

    handle = models.CharField(max_length=MAX_HANDLE_CHARS, primary_key=True)
    key = models.ForeignKey(ApiKey, on_delete=models.CASCADE, related_name="+")
    sealed = models.TextField(help_text="Encrypted.")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["key", "created_at"], name="kept_result_of_key"),
            models.Index(fields=["expires_at"], name="kept_result_expiry"),
        ]

    def __str__(self) -> str:
        return f"of key {self.key_id}"


class GatewayClient(models.Model):
    """An MCP client that a key was used with, as it named itself."""

    key = models.ForeignKey(ApiKey, on_delete=models.CASCADE, related_name="clients")
    name = models.CharField(max_length=MAX_NAME_CHARS)
    version = models.CharField(max_length=MAX_NAME_CHARS, blank=True)
    revision = models.CharField(max_length=MAX_REVISION_CHARS)
    exposure = models.CharField(max_length=8)
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    last_call_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-last_seen_at", "-pk"]
        indexes = [models.Index(fields=["-last_seen_at"], name="gateway_client_by_time")]
        constraints = [
            models.UniqueConstraint(
                fields=["key", "name", "revision", "exposure"], name="gateway_client_is_listed_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.revision}"


class GatewayProcess(models.Model):
    """A running gateway process. It writes its row every two seconds."""

    process = models.CharField(
        max_length=MAX_PROCESS_CHARS, primary_key=True, help_text="Node and process id."
    )
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    open_streams = models.PositiveIntegerField(default=0)
    open_calls = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return self.process


class OpenLease(models.Model):
    """A gateway process's connection to a server, as the process last wrote it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    process = models.ForeignKey(GatewayProcess, on_delete=models.CASCADE, related_name="leases")
    server = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="leases")
    key = models.ForeignKey(
        ApiKey,
        on_delete=models.CASCADE,
        null=True,
        related_name="leases",
        help_text="Unset where keys share it.",
    )
    opened_at = models.DateTimeField()
    last_used_at = models.DateTimeField()
    open_calls = models.PositiveIntegerField(default=0)
    protocol_version = models.CharField(max_length=MAX_REVISION_CHARS, blank=True)
    close_requested = models.BooleanField(default=False)

    class Meta:
        ordering = ["server", "opened_at"]

    def __str__(self) -> str:
        return f"{self.server_id} of key {self.key_id}"


class BreakerState(models.TextChoices):
    CLOSED = "closed", "Calls go through"
    OPEN = "open", "Calls are refused for a while"
    HALF_OPEN = "half_open", "One call is let through to try"


class UpstreamState(models.Model):
    """What a gateway process knows of a server: its circuit breaker, and what could not be passed on."""

    process = models.ForeignKey(GatewayProcess, on_delete=models.CASCADE, related_name="upstreams")
    server = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="gateway_states")
    breaker = models.CharField(max_length=9, choices=BreakerState, default=BreakerState.CLOSED)
    failures = models.PositiveIntegerField(default=0, help_text="In a row.")
    open_until = models.DateTimeField(null=True)
    error = models.TextField(blank=True)
    refused = models.JSONField(default=dict, help_text="How often each thing was refused, by its name.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["process", "server"], name="upstream_state_is_known_once"),
            one_of("breaker", BreakerState, table="upstream_state"),
        ]

    def __str__(self) -> str:
        return f"{self.server_id} {self.breaker}"
