"""Tools: definitions, an admin's settings, and every revision of a definition."""

from django.db import models
from django.db.models import Q
from django.urls import reverse

from catalog.domain import sizes
from catalog.domain.approvals import held_by
from catalog.domain.choices import Approval, Loading, Quarantine
from catalog.models.constraints import labelled, one_of
from catalog.models.servers import Server


class State(models.TextChoices):
    """Derived from the row, never stored."""

    ACTIVE = "active", "Active"
    HIDDEN = "hidden", "Hidden"
    GONE = "gone", "Gone"


class ToolQuerySet(models.QuerySet["Tool"]):
    def listed(self) -> "ToolQuerySet":
        """Tools that may be in a list, a sum or a search."""
        return self.filter(gone_at=None, hidden=False, server__enabled=True)

    def held_by(self, quarantine: str) -> "ToolQuerySet":
        """Tools that a policy with this setting keeps locked until an admin approves them."""
        return self.filter(approval__in=held_by(Quarantine(quarantine)))

    def let_through(self, quarantine: str) -> "ToolQuerySet":
        """Tools that it does not lock."""
        return self.exclude(approval__in=held_by(Quarantine(quarantine)))


class Tool(models.Model):
    server = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="tools")
    name = models.CharField(max_length=255, help_text="The tool's own name, as its server gives it.")
    qualified_name = models.CharField(max_length=64, unique=True, help_text="Once given, it stays.")

    title = models.TextField(blank=True)
    description = models.TextField(blank=True)
    input_schema = models.JSONField(default=dict)
    output_schema = models.JSONField(null=True, blank=True)
    annotations = models.JSONField(default=dict, blank=True)
    meta = models.JSONField(default=dict, blank=True)
    extra = models.JSONField(
        default=dict, blank=True, help_text="What else the definition holds: icons, execution."
    )
    digest = models.CharField(max_length=64, help_text="SHA-256 of everything a model can see.")
    chars = models.PositiveIntegerField(help_text="Definition size in characters.")

    loading = models.CharField(max_length=8, choices=labelled(Loading), default=Loading.INHERIT)
    keywords = models.JSONField(default=list, blank=True, help_text="Indexed, never sent to a model.")
    hidden = models.BooleanField(default=False)
    read_only = models.BooleanField(
        null=True, blank=True, help_text="An admin's word; unset is what the definition says."
    )

    marks = models.JSONField(
        null=True, blank=True, help_text="What in the definition to look at; unset until it was looked over."
    )
    mark_count = models.PositiveSmallIntegerField(null=True, blank=True)
    approval = models.CharField(
        max_length=8, choices=labelled(Approval), default=Approval.NEW, db_default=Approval.NEW.value
    )
    baseline_digest = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="Of the approved form, or of the first one of a tool that nobody approved.",
    )
    approved_by = models.CharField(
        max_length=200,
        blank=True,
        default="",
        db_default="",
        help_text="Empty for a tool that was known when quarantine was switched on.",
    )
    approved_at = models.DateTimeField(null=True, blank=True)

    version = models.PositiveBigIntegerField(
        default=0, help_text="The catalog's version when what is searched last changed."
    )
    facts_version = models.PositiveBigIntegerField(
        default=0, help_text="The catalog's version when what decides about it last changed."
    )
    first_seen_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    gone_at = models.DateTimeField(null=True, blank=True)

    objects = ToolQuerySet.as_manager()

    class Meta:
        ordering = ["qualified_name"]
        indexes = [
            models.Index(fields=["-chars", "qualified_name"], name="tool_by_size"),
            models.Index(fields=["gone_at", "hidden", "server"], name="tool_listed"),
            models.Index(fields=["loading", "qualified_name"], name="tool_by_loading"),
            models.Index(fields=["-changed_at"], name="tool_by_change"),
            models.Index(fields=["version"], name="tool_by_version"),
            models.Index(fields=["facts_version"], name="tool_by_facts_version"),
            models.Index(
                fields=["approval", "mark_count", "approved_by", "gone_at", "hidden", "server"],
                name="tool_to_review",
            ),
            models.Index(fields=["id"], condition=Q(mark_count=None), name="tool_unmarked"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["server", "name"], name="tool_name_is_unique_in_its_server"),
            one_of("loading", Loading, table="tool"),
            one_of("approval", Approval, table="tool"),
            models.CheckConstraint(
                condition=~Q(approval=Approval.APPROVED.value) | Q(approved_at__isnull=False),
                name="tool_approved_has_a_time",
            ),
            models.CheckConstraint(condition=~Q(name="") & ~Q(qualified_name=""), name="tool_has_names"),
        ]

    def __str__(self) -> str:
        return self.qualified_name

    def get_absolute_url(self) -> str:
        return reverse("tool_detail", args=[self.qualified_name])

    @property
    def has_open_marks(self) -> bool:
        """Whether it has marks that no admin has approved."""
        return bool(self.mark_count) and not (self.approval == Approval.APPROVED and self.approved_by)

    @property
    def tokens(self) -> int:
        return sizes.tokens_of(self.chars)

    @property
    def state(self) -> State:
        if self.gone_at is not None:
            return State.GONE
        return State.HIDDEN if self.hidden else State.ACTIVE


class ToolRevision(models.Model):
    """One revision of a definition, the current one included."""

    tool = models.ForeignKey(Tool, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    definition = models.JSONField()
    chars = models.PositiveIntegerField()
    seen_at = models.DateTimeField()

    class Meta:
        ordering = ["tool", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["tool", "number"], name="revision_number_is_unique_in_its_tool"),
            models.CheckConstraint(condition=Q(number__gte=1), name="revision_numbers_start_at_1"),
        ]

    def __str__(self) -> str:
        return f"{self.tool_id} #{self.number}"


class ToolTag(models.Model):
    """A word an admin put on a tool, to filter by."""

    tool = models.ForeignKey(Tool, on_delete=models.CASCADE, related_name="tags")
    name = models.CharField(max_length=40)

    class Meta:
        ordering = ["name"]
        indexes = [models.Index(fields=["name", "tool"], name="tag_by_name")]
        constraints = [
            models.UniqueConstraint(fields=["tool", "name"], name="tag_is_unique_on_its_tool"),
            models.CheckConstraint(condition=~Q(name=""), name="tag_has_a_name"),
        ]

    def __str__(self) -> str:
        return self.name
