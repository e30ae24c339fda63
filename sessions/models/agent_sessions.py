"""Agents' conversations, and what each loaded, searched and kept."""

import uuid
from datetime import datetime

from django.db import models, transaction
from django.db.models import Q
from django.urls import reverse

from catalog.models import ApiKey, Policy
from catalog.models.constraints import one_of


class AgentSessionQuerySet(models.QuerySet["AgentSession"]):
    def expired(self, *, now: datetime) -> "AgentSessionQuerySet":
        return self.filter(expires_at__lte=now)

    def live(self, *, now: datetime) -> "AgentSessionQuerySet":
        return self.filter(expires_at__gt=now)

    def end(self) -> int:
        """Delete the sessions with everything of theirs. Locks them first, so that a buffered write either
        comes before or finds them gone.
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
        default=0, db_default=0, help_text="About what it stores beyond what every session may."
    )
    snapshot_bytes = models.PositiveIntegerField(
        default=0, db_default=0, help_text="What its snapshots take."
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
    """A tool that a search loaded, in load order. Kept by name, because a session's own tools have no row."""

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


class SearchEventOutcome(models.TextChoices):
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
    outcome = models.CharField(max_length=8, choices=SearchEventOutcome)
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
        constraints = [one_of("outcome", SearchEventOutcome, table="search")]

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
    """Something that happened to a session, and what its tool list cost from then on. Kept as long as
    searches are.
    """

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
    """Counts of one hour, kept so that charts need not read single searches."""

    hour = models.DateTimeField(primary_key=True)
    sessions = models.PositiveIntegerField(default=0, help_text="Begun in this hour.")
    searches = models.PositiveIntegerField(default=0)
    misses = models.PositiveIntegerField(default=0, help_text="Searches that found nothing.")

    class Meta:
        ordering = ["hour"]

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H}"
