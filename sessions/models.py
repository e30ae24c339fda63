"""Agents: their keys, their conversations, what each conversation loaded, searched and kept."""

import uuid
from datetime import datetime

from django.conf import settings
from django.db import models, transaction
from django.db.models import Q
from django.urls import reverse

from catalog.models import Policy
from catalog.models.constraints import one_of


class Scope(models.TextChoices):
    AGENT = "agent", "Agent"
    ADMIN = "admin", "Admin"


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def usable(self, *, now: datetime) -> "ApiKeyQuerySet":
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=now), revoked_at=None)


class ApiKey(models.Model):
    """A key is shown once; the row keeps its public prefix and a keyed hash."""

    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16, unique=True)
    digest = models.CharField(max_length=64)
    scope = models.CharField(max_length=8, choices=Scope, default=Scope.AGENT)
    policy = models.ForeignKey(Policy, on_delete=models.PROTECT, related_name="keys")
    rate_limit_per_minute = models.PositiveIntegerField(null=True, blank=True)
    max_sessions = models.PositiveIntegerField(
        null=True, blank=True, help_text="Unset leaves it to the policy's limit."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        ordering = ["name", "pk"]
        constraints = [
            one_of("scope", Scope, table="key"),
            models.CheckConstraint(condition=~Q(name="") & ~Q(prefix=""), name="key_has_names"),
            models.CheckConstraint(
                condition=Q(rate_limit_per_minute=None) | Q(rate_limit_per_minute__gte=1),
                name="key_rate_limit_is_positive",
            ),
            models.CheckConstraint(
                condition=Q(max_sessions=None) | Q(max_sessions__gte=1), name="key_max_sessions_is_positive"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class AgentSessionQuerySet(models.QuerySet["AgentSession"]):
    def expired(self, *, now: datetime) -> "AgentSessionQuerySet":
        return self.filter(expires_at__lte=now)

    def live(self, *, now: datetime) -> "AgentSessionQuerySet":
        return self.filter(expires_at__gt=now)

    def end(self) -> int:
        """Delete them and all of theirs. Locked first: notes of them that are just being written come before
        or, finding them gone, not at all.
        """
        with transaction.atomic():
            ids = list(self.select_for_update(of=("self",)).order_by("pk").values_list("pk", flat=True))
            AgentSession.objects.filter(pk__in=ids).delete()
        return len(ids)


class AgentSession(models.Model):
    """One agent conversation: its policy, its turn, its loaded tools."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    key = models.ForeignKey(ApiKey, on_delete=models.CASCADE, related_name="agent_sessions")
    policy = models.ForeignKey(Policy, on_delete=models.PROTECT, related_name="agent_sessions")
    external_id = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001  unset is not unique
    model = models.CharField(max_length=100, blank=True)
    turn = models.PositiveIntegerField(default=0)
    context_window = models.PositiveIntegerField(null=True, blank=True)
    context_used = models.PositiveIntegerField(default=0)
    context_was_over = models.BooleanField(default=False, help_text="Sticky until reset.")
    visible = models.JSONField(null=True, blank=True)
    turn_visible = models.JSONField(null=True, blank=True, help_text="Narrows the present turn only.")
    builtin_tools = models.JSONField(default=list, blank=True)
    own_bytes = models.PositiveIntegerField(
        default=0, db_default=0, help_text="About what its built-ins and lists of visible tools take."
    )
    version = models.PositiveBigIntegerField(default=1, help_text="Only grows.")
    created_at = models.DateTimeField(auto_now_add=True)
    last_seen_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    objects = AgentSessionQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["key", "-created_at", "-id"], name="agent_session_of_key"),
            models.Index(fields=["policy", "last_seen_at"], name="agent_session_idle"),
            models.Index(fields=["expires_at"], name="agent_session_expiry"),
            models.Index(fields=["-last_seen_at"], name="agent_session_by_activity"),
            models.Index(
                fields=["key", "last_seen_at", "own_bytes"],
                condition=Q(own_bytes__gt=0),
                name="agent_session_with_own_bytes",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["key", "external_id"], name="agent_session_external_id_is_unique_in_its_key"
            ),
            models.CheckConstraint(
                condition=Q(context_window=None) | Q(context_window__gte=1),
                name="agent_session_context_window_is_positive",
            ),
            models.CheckConstraint(condition=Q(version__gte=1), name="agent_session_version_starts_at_1"),
        ]

    def __str__(self) -> str:
        return self.external_id or str(self.id)

    def get_absolute_url(self) -> str:
        return reverse("session_detail", args=[self.pk])


class LoadedTool(models.Model):
    """A tool that a search loaded, in load order. Kept by name: a session's own tools have no row."""

    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="loaded_tools")
    name = models.CharField(max_length=64, help_text="Qualified name.")
    position = models.PositiveIntegerField()
    loaded_turn = models.PositiveIntegerField()
    used_turn = models.PositiveIntegerField(help_text="The last turn that loaded or called it.")
    used_order = models.PositiveBigIntegerField(default=0, help_text="Grows with every use in the session.")

    class Meta:
        ordering = ["session", "position"]
        indexes = [models.Index(fields=["name"], name="loaded_tool_by_name")]
        constraints = [
            models.UniqueConstraint(fields=["session", "name"], name="loaded_tool_is_loaded_once"),
            models.UniqueConstraint(fields=["session", "position"], name="loaded_tool_has_its_place"),
            models.CheckConstraint(
                condition=Q(used_turn__gte=models.F("loaded_turn")), name="loaded_tool_is_used_after_loading"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Outcome(models.TextChoices):
    MATCHED = "matched", "Matched"
    NO_MATCH = "no_match", "No match"
    LISTING = "listing", "Listing"
    INACTIVE = "inactive", "Inactive"


class SearchEvent(models.Model):
    """One search of an agent, kept for a configured time."""

    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="searches")
    at = models.DateTimeField()
    turn = models.PositiveIntegerField()
    query = models.TextField()
    form = models.CharField(max_length=12)
    outcome = models.CharField(max_length=8, choices=Outcome)
    hits = models.JSONField(default=list, help_text="Qualified names with their scores, best first.")
    tokens_loaded = models.PositiveIntegerField(default=0)
    took_us = models.PositiveIntegerField()

    class Meta:
        ordering = ["-at", "-pk"]
        indexes = [
            models.Index(fields=["session", "-at"], name="search_of_session"),
            models.Index(fields=["outcome", "-at"], name="search_by_outcome"),
            models.Index(fields=["at"], name="search_age"),
        ]
        constraints = [one_of("outcome", Outcome, table="search")]

    def __str__(self) -> str:
        return self.query


class SnapshotCause(models.TextChoices):
    REQUEST = "request", "Requested"
    COMPACTION = "compaction", "Compaction"


class Snapshot(models.Model):
    """The loaded tools, the search tool and the deferral state at one moment of a session."""

    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="snapshots")
    cause = models.CharField(max_length=10, choices=SnapshotCause, default=SnapshotCause.REQUEST)
    turn = models.PositiveIntegerField()
    loaded = models.JSONField(default=list, help_text="Qualified names with their turns, in load order.")
    search_tool_name = models.CharField(max_length=64)
    was_active = models.BooleanField()
    context_used = models.PositiveIntegerField(default=0)
    context_was_over = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at", "-pk"]
        indexes = [models.Index(fields=["session", "-created_at"], name="snapshot_of_session")]
        constraints = [one_of("cause", SnapshotCause, table="snapshot")]

    def __str__(self) -> str:
        return f"{self.session_id} turn {self.turn}"


class EventKind(models.TextChoices):
    BEGAN = "began", "Began"
    CHANGED = "changed", "Changed"
    TURN = "turn", "Turn"
    LOADED = "loaded", "Loaded"
    UNLOADED = "unloaded", "Unloaded"
    SNAPSHOT = "snapshot", "Snapshot"
    COMPACTED = "compacted", "Compacted"
    RESTORED = "restored", "Restored"
    RESET = "reset", "Reset"


class SessionEvent(models.Model):
    """One moment of a session, and what its tool list cost from then on. Kept as long as searches are."""

    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField()
    kind = models.CharField(max_length=9, choices=EventKind)
    turn = models.PositiveIntegerField(help_text="The turn in force after it.")
    by = models.CharField(max_length=200, blank=True, help_text="Empty: the agent itself.")
    loaded = models.JSONField(default=list, help_text="Qualified names, the first of them.")
    loaded_count = models.PositiveIntegerField(default=0)
    unloaded = models.JSONField(default=list, help_text="Qualified names, the first of them.")
    unloaded_count = models.PositiveIntegerField(default=0)
    snapshot_turn = models.PositiveIntegerField(
        null=True, blank=True, help_text="When its snapshot was taken."
    )
    context_used = models.PositiveIntegerField(default=0)
    tokens_full = models.PositiveIntegerField()
    tokens_sent = models.PositiveIntegerField()

    class Meta:
        ordering = ["-at", "-pk"]
        indexes = [
            models.Index(fields=["session", "-at", "-id"], name="event_of_session"),
            models.Index(fields=["at"], name="event_age"),
        ]
        constraints = [one_of("kind", EventKind, table="event")]

    def __str__(self) -> str:
        return f"{self.session_id} {self.kind}"


class ActivityHour(models.Model):
    """What agents did in one hour, counted as it is recorded: a page over time reads no single search."""

    hour = models.DateTimeField(primary_key=True)
    sessions = models.PositiveIntegerField(default=0, help_text="Begun in this hour.")
    searches = models.PositiveIntegerField(default=0)
    misses = models.PositiveIntegerField(default=0, help_text="Searches that found nothing.")

    class Meta:
        ordering = ["hour"]

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H}"
