"""Language models: who searches deferred tools itself, windows, prices. Data that an admin can edit."""

from django.core.validators import MinValueValidator
from django.db import models

from catalog.domain.prices import PRICE_DECIMALS
from catalog.models.constraints import one_of


class Provider(models.TextChoices):
    """The API that a model speaks, and so the format of its tool list."""

    ANTHROPIC = "anthropic", "Anthropic"
    OPENAI = "openai", "OpenAI"
    OTHER = "other", "Other"


class ModelSupport(models.Model):
    """One row for all models whose name matches the pattern; of several, the longest pattern counts."""

    name_pattern = models.CharField(
        max_length=100, unique=True, help_text="A glob, such as claude-opus-4-5*."
    )
    provider = models.CharField(max_length=10, choices=Provider)
    hosted_search = models.BooleanField(
        default=False, help_text="The provider searches deferred tools itself."
    )
    context_window = models.PositiveIntegerField(
        null=True, blank=True, help_text="In tokens; unset leaves it to the policy."
    )
    input_price = models.DecimalField(
        max_digits=12,
        decimal_places=PRICE_DECIMALS,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="US dollars per million input tokens; unset is unknown.",
    )
    cached_input_price = models.DecimalField(
        max_digits=12,
        decimal_places=PRICE_DECIMALS,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="US dollars per million input tokens that the provider's prompt cache has.",
    )
    prices_are_examples = models.BooleanField(
        default=False, db_default=False, help_text="The demo's prices, which nobody has set."
    )

    class Meta:
        ordering = ["name_pattern"]
        verbose_name_plural = "model support"
        constraints = [
            one_of("provider", Provider, table="model"),
            models.CheckConstraint(condition=~models.Q(name_pattern=""), name="model_has_a_pattern"),
            models.CheckConstraint(
                condition=models.Q(context_window=None) | models.Q(context_window__gte=1),
                name="model_context_window_is_positive",
            ),
        ]

    def __str__(self) -> str:
        return self.name_pattern
