"""API keys, which agents and scripts call the REST API with."""

from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import Q

from catalog.models.constraints import one_of
from catalog.models.policies import Policy

MAX_CLIENT_CHARS = 100
MAX_CALL_CHARS = 100


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
    last_client = models.CharField(
        max_length=MAX_CLIENT_CHARS, blank=True, default="", db_default="", help_text="As it named itself."
    )
    last_call = models.CharField(
        max_length=MAX_CALL_CHARS, blank=True, default="", db_default="", help_text="Method and path, no ids."
    )

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        db_table = "agent_sessions_apikey"  # its name from before it was the catalog's
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
