"""Saved queries with the tools they should find, and the results of each run."""

from django.db import models
from django.db.models import Q

from catalog.domain.limits import QUERY_CHARS
from catalog.models.constraints import within
from catalog.models.policies import Policy


class SavedQuery(models.Model):
    """A query that is run with the policy's settings, as its agents search."""

    policy = models.ForeignKey(Policy, on_delete=models.CASCADE, related_name="saved_queries")
    query = models.CharField(max_length=QUERY_CHARS)
    expected = models.JSONField(help_text="Qualified names of the tools that it should find.")
    demo = models.BooleanField(
        default=False, db_default=False, help_text="Came with the demo, and goes with it."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["policy", "query"]
        verbose_name_plural = "saved queries"
        constraints = [
            models.UniqueConstraint(fields=["policy", "query"], name="saved_query_is_one_per_policy"),
            models.CheckConstraint(condition=~Q(query=""), name="saved_query_has_words"),
        ]

    def __str__(self) -> str:
        return self.query


class SavedRun(models.Model):
    """One run of all saved queries of a policy. One run is kept for each state of catalog and policy."""

    policy = models.ForeignKey(Policy, on_delete=models.CASCADE, related_name="saved_runs")
    at = models.DateTimeField()
    catalog_version = models.PositiveBigIntegerField()
    policy_version = models.PositiveIntegerField()
    queries = models.PositiveIntegerField()
    passed = models.PositiveIntegerField()
    recall = models.FloatField(help_text="R@5: the share of expected tools among the first five, a mean.")

    class Meta:
        ordering = ["policy", "-at", "-pk"]
        indexes = [models.Index(fields=["policy", "-at", "-id"], name="saved_run_of_policy")]
        constraints = [
            models.UniqueConstraint(
                fields=["policy", "catalog_version", "policy_version"], name="saved_run_is_one_per_state"
            ),
            within("recall", 0, 1, table="saved_run"),
            models.CheckConstraint(
                condition=Q(passed__lte=models.F("queries")), name="saved_run_passes_no_more_than_it_asks"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.policy_id}: {self.passed} of {self.queries}"


class SavedResult(models.Model):
    """The result of one saved query in one run."""

    run = models.ForeignKey(SavedRun, on_delete=models.CASCADE, related_name="results")
    saved_query = models.ForeignKey(SavedQuery, on_delete=models.CASCADE, related_name="results")
    places = models.JSONField(help_text="Each expected tool's place, from 1; unset where it was not found.")
    passed = models.BooleanField()
    recall = models.FloatField()

    class Meta:
        ordering = ["run", "saved_query"]
        constraints = [
            models.UniqueConstraint(fields=["run", "saved_query"], name="saved_result_is_one_per_run"),
            within("recall", 0, 1, table="saved_result"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id}/{self.saved_query_id}: {'passed' if self.passed else 'failed'}"
