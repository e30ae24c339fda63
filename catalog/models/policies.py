"""Policies: how deferral and search behave for the agents that use one."""

from datetime import timedelta

from django.db import models
from django.db.models import Q
from django.urls import reverse

from catalog.domain.approvals import held_by
from catalog.domain.choices import (
    Exposure,
    Mode,
    PromptStyle,
    Quarantine,
    Ranker,
    RecordCalls,
    ThresholdUnit,
)
from catalog.domain.limits import CALL_SECONDS, COUNT, RESULTS
from catalog.domain.policy import DEFAULT_MEANING_FLOOR
from catalog.models.constraints import labelled, one_of, within


class Policy(models.Model):
    slug = models.SlugField(max_length=64, unique=True)
    description = models.CharField(max_length=200, blank=True)

    mode = models.CharField(max_length=8, choices=labelled(Mode), default=Mode.ALWAYS)
    threshold_unit = models.CharField(
        max_length=16, choices=labelled(ThresholdUnit), default=ThresholdUnit.CHARS
    )
    threshold = models.FloatField(null=True, blank=True, help_text="Unset takes the unit's default.")
    context_window = models.PositiveIntegerField(null=True, blank=True, help_text="Unset is 200,000 tokens.")
    never_defer = models.JSONField(default=list, blank=True)
    always_defer = models.JSONField(default=list, blank=True)
    visible = models.JSONField(
        null=True, blank=True, help_text="Unset shows everything, an empty list nothing."
    )
    defer_builtins = models.BooleanField(default=False)

    max_results = models.PositiveSmallIntegerField(default=5)
    keep_loaded_tools = models.BooleanField(default=True)
    keep_on_compaction = models.BooleanField(default=True)
    max_loaded_tools = models.PositiveIntegerField(null=True, blank=True)
    unload_after_idle_turns = models.PositiveIntegerField(null=True, blank=True)

    ranker = models.CharField(max_length=8, choices=labelled(Ranker), default=Ranker.BM25F)
    score_cutoff = models.FloatField(default=0)
    meaning_floor = models.FloatField(
        default=DEFAULT_MEANING_FLOOR,
        db_default=DEFAULT_MEANING_FLOOR,
        help_text="The similarity from which a tool may match by meaning alone.",
    )
    search_tool_name = models.CharField(max_length=64, default="search_tools")
    prompt_style = models.CharField(
        max_length=24, choices=labelled(PromptStyle), default=PromptStyle.CATEGORIES
    )
    prompt_budget_tokens = models.PositiveIntegerField(default=400)
    quarantine = models.CharField(max_length=16, choices=labelled(Quarantine), default=Quarantine.OFF)
    max_sessions = models.PositiveIntegerField(default=100_000)
    session_ttl = models.DurationField(default=timedelta(days=30))

    exposure = models.CharField(
        max_length=8,
        choices=labelled(Exposure),
        default=Exposure.SEARCH,
        db_default=Exposure.SEARCH.value,
        help_text="How the gateway lists tools to MCP clients.",
    )
    call_timeout_seconds = models.PositiveIntegerField(default=120, db_default=120)
    max_result_tokens = models.PositiveIntegerField(
        default=20_000, db_default=20_000, help_text="0 is no limit."
    )
    record_calls = models.CharField(
        max_length=5,
        choices=labelled(RecordCalls),
        default=RecordCalls.NAMES,
        db_default=RecordCalls.NAMES.value,
    )

    version = models.PositiveIntegerField(default=1, help_text="Grows with every save.")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["slug"]
        verbose_name_plural = "policies"
        constraints = [
            one_of("mode", Mode, table="policy"),
            one_of("threshold_unit", ThresholdUnit, table="policy"),
            one_of("ranker", Ranker, table="policy"),
            one_of("prompt_style", PromptStyle, table="policy"),
            one_of("quarantine", Quarantine, table="policy"),
            one_of("exposure", Exposure, table="policy"),
            one_of("record_calls", RecordCalls, table="policy"),
            within("threshold", 0, 1e12, table="policy"),
            within("context_window", 1, COUNT, table="policy"),
            within("max_results", 1, RESULTS, table="policy"),
            within("max_loaded_tools", 1, COUNT, table="policy"),
            within("unload_after_idle_turns", 1, COUNT, table="policy"),
            within("score_cutoff", 0, 1, table="policy"),
            within("meaning_floor", 0, 1, table="policy"),
            within("max_sessions", 1, COUNT, table="policy"),
            within("call_timeout_seconds", 1, CALL_SECONDS, table="policy"),
            within("max_result_tokens", 0, COUNT, table="policy"),
            models.CheckConstraint(
                condition=Q(session_ttl__gt=timedelta()), name="policy_session_ttl_is_positive"
            ),
            models.CheckConstraint(condition=~Q(slug="") & ~Q(search_tool_name=""), name="policy_has_names"),
        ]

    def __str__(self) -> str:
        return self.slug

    def get_absolute_url(self) -> str:
        return reverse("policy_detail", args=[self.slug])

    def holds_back(self, approval: str) -> bool:
        """Whether a tool with this approval is locked under this policy."""
        return approval in held_by(Quarantine(self.quarantine))


class PolicyVersion(models.Model):
    """A saved version of a policy, the current one included, with who saved it and when."""

    policy = models.ForeignKey(Policy, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    fields = models.JSONField()
    actor = models.CharField(max_length=200)
    saved_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["policy", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["policy", "number"], name="policy_version_number_is_unique"),
            models.CheckConstraint(condition=Q(number__gte=1), name="policy_versions_start_at_1"),
        ]

    def __str__(self) -> str:
        return f"{self.policy_id} #{self.number}"
