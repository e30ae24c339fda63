"""Stored decisions: for every policy the decided list, with a version."""

from django.db import models

from catalog.domain.choices import Outcome, Reason
from catalog.models.constraints import labelled, one_of
from catalog.models.policies import Policy
from catalog.models.tools import Tool


class DecidedList(models.Model):
    """The versions one policy's decisions were made from, and their sums.

    It changes in the transaction that changes its decisions: a reader who sees the same `version` before and
    after has read one consistent list. The first list is the exception: while both `version` and
    `policy_version` are 0, its decisions are written in batches. `policy_version` alone is 0 while all
    decisions are to be made again and the old ones still count.
    """

    policy = models.OneToOneField(Policy, on_delete=models.CASCADE, primary_key=True, related_name="decided")
    version = models.PositiveBigIntegerField(default=0, help_text="Grows whenever a decision changes.")
    catalog_version = models.PositiveBigIntegerField(default=0)
    policy_version = models.PositiveIntegerField(default=0)
    over = models.BooleanField(null=True)
    tools = models.PositiveIntegerField(default=0, help_text="Visible tools.")
    chars = models.PositiveBigIntegerField(default=0, help_text="Of visible mcp and plugin tools.")
    deferred = models.PositiveIntegerField(default=0)
    deferred_chars = models.PositiveBigIntegerField(default=0)
    all_chars = models.PositiveBigIntegerField(default=0, help_text="Of all visible tools.")

    def __str__(self) -> str:
        return f"{self.policy_id} version {self.version}"


class Decision(models.Model):
    """One visible tool under one policy. `chars` is the size that was counted when it was decided."""

    policy = models.ForeignKey(Policy, on_delete=models.CASCADE, related_name="decisions")
    tool = models.ForeignKey(Tool, on_delete=models.CASCADE, related_name="decisions")
    outcome = models.CharField(max_length=5, choices=labelled(Outcome))
    reason = models.CharField(max_length=16, choices=labelled(Reason))
    chars = models.PositiveIntegerField()

    class Meta:
        indexes = [models.Index(fields=["policy", "outcome", "reason"], name="decision_by_outcome")]
        constraints = [
            models.UniqueConstraint(fields=["policy", "tool"], name="decision_is_one_per_policy_and_tool"),
            one_of("outcome", Outcome, table="decision"),
            one_of("reason", Reason, table="decision"),
        ]

    def __str__(self) -> str:
        return f"{self.policy_id}/{self.tool_id}: {self.outcome} ({self.reason})"
