"""Signing in to servers by OAuth: the client that this console is, what it was granted, what is under way."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from catalog.domain.choices import AuthKind, AuthState
from catalog.domain.limits import OAUTH_URL_CHARS
from catalog.models.constraints import labelled, one_of
from catalog.models.servers import Server


class ClientSource(models.TextChoices):
    """Where the client id comes from."""

    GIVEN = "given", "Given by an admin"
    DOCUMENT = "document", "The address of this console's own description"
    REGISTERED = "registered", "Registered by this console"


class OAuthClient(models.Model):
    """How this console is known to the authorization server of a server."""

    server = models.OneToOneField(Server, on_delete=models.CASCADE, related_name="oauth_client")
    kind = models.CharField(max_length=20, choices=labelled(AuthKind), default=AuthKind.OAUTH.value)
    source = models.CharField(max_length=12, choices=ClientSource)
    issuer = models.CharField(max_length=OAUTH_URL_CHARS)
    client_id = models.TextField()
    method = models.CharField(max_length=40, help_text="How it proves who it is; empty: as the server wants.")
    redirect_uris = models.JSONField(default=list, help_text="Those that it was registered with.")
    scopes = models.JSONField(
        default=list, help_text="An admin's choice, or those that it registered for; empty: the server's."
    )
    pkce_unlisted = models.BooleanField(
        default=False, help_text="The authorization server takes PKCE although it does not say so."
    )
    sealed = models.TextField(blank=True, help_text="Encrypted: the client's secret or private key.")
    secret_expires_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(kind__in=[AuthKind.OAUTH.value, AuthKind.CLIENT_CREDENTIALS.value]),
                name="oauth_client_kind_is_known",
            ),
            one_of("source", ClientSource, table="oauth_client"),
            models.CheckConstraint(condition=~Q(client_id=""), name="oauth_client_has_an_id"),
        ]

    def __str__(self) -> str:
        return f"client of server {self.server_id} at {self.issuer}"


class OAuthGrant(models.Model):
    """What this console may do at a server, and what the server last asked for.

    `generation` grows with each new token. While `held_until` lies ahead, `holder` is getting one; nobody
    else may, since a refresh token that is used twice ends the grant.
    """

    server = models.OneToOneField(Server, on_delete=models.CASCADE, related_name="oauth_grant")
    state = models.CharField(max_length=20, choices=labelled(AuthState), default=AuthState.NONE.value)
    resource_metadata = models.CharField(max_length=OAUTH_URL_CHARS, blank=True)
    needed_scopes = models.JSONField(default=list, help_text="Those that the server asked for last.")
    issuer = models.CharField(max_length=OAUTH_URL_CHARS, blank=True)
    address_sha256 = models.CharField(
        max_length=64, blank=True, help_text="Of the server's address that the tokens are for."
    )
    asked_scopes = models.JSONField(default=list)
    granted_scopes = models.JSONField(default=list)
    connected_by = models.CharField(max_length=200, blank=True)
    connected_at = models.DateTimeField(null=True, blank=True)
    obtained_at = models.DateTimeField(null=True, blank=True, help_text="When the present token was made.")
    expires_at = models.DateTimeField(null=True, blank=True)
    renews = models.BooleanField(default=False, help_text="Whether a new token needs nobody to sign in.")
    generation = models.PositiveBigIntegerField(default=0)
    holder = models.CharField(max_length=40, blank=True)
    held_until = models.DateTimeField(null=True, blank=True)
    rest_until = models.DateTimeField(
        null=True, blank=True, help_text="The authorization server failed, and is not asked before then."
    )
    last_error = models.TextField(blank=True)
    sealed = models.TextField(blank=True, help_text="Encrypted: tokens, and who gives new ones.")

    class Meta:
        constraints = [one_of("state", AuthState, table="oauth_grant")]

    def __str__(self) -> str:
        return f"server {self.server_id}: {self.state}"


class OAuthAttempt(models.Model):
    """A sign-in under way in somebody's browser. It can come back once."""

    state_sha256 = models.CharField(max_length=64, unique=True)
    server = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    expires_at = models.DateTimeField()
    sealed = models.TextField(help_text="Encrypted: what the way back needs.")

    class Meta:
        indexes = [models.Index(fields=["expires_at"], name="oauth_attempt_age")]

    def __str__(self) -> str:
        return f"sign-in of user {self.user_id} at server {self.server_id}"
