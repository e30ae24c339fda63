"""What a strict authorization server grants, and refuses: the rules of `sign_in_server`.

It compares redirect addresses as strings, wants PKCE and the resource, takes a code once, and rotates refresh
tokens: one that comes again ends the whole grant, and is counted. It signs people in without asking them.
"""

import base64
import hashlib
import itertools
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlencode

import jwt

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
METHODS = ("none", "client_secret_basic", "client_secret_post", "private_key_jwt")
LONGEST_ASSERTION_SECONDS = 60
CODE_SECONDS = 60


@dataclass
class Rules:
    """How the server behaves. `lives` are the seconds of its access tokens by turns; None is without an end.

    `metadata`, `registration` and `tokens` are put in place of what it would say; None takes a field out.
    `documents` are clients that describe themselves, and their redirect addresses. `error` is what comes back
    in place of a code, `iss` another issuer than its own.
    """

    lives: tuple[int | None, ...] = (3600,)
    delay_seconds: tuple[float, float] = (0.0, 0.0)  # after it has decided, before it answers for a token
    methods: tuple[str, ...] = METHODS
    scopes: tuple[str, ...] = ("read", "count", "offline_access")
    pkce: tuple[str, ...] | None = ("S256",)
    registers: bool = True
    registered_method: str = ""
    keeps_to_registered_scopes: bool = False
    documents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    gives_refresh_tokens: bool = True
    rotates: bool = True
    names_scopes: bool = True
    sends_iss: bool = True
    iss: str = ""
    error: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    registration: Mapping[str, Any] = field(default_factory=dict)
    tokens: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """A request. `form` is also the query of one without a body."""

    method: str
    path: str
    headers: Mapping[str, str]
    form: Mapping[str, str]
    body: bytes


@dataclass
class Client:
    method: str
    redirect_uris: tuple[str, ...] = ()
    secret: str = ""
    public_key: str = ""
    may_ask_for_itself: bool = False
    scopes: frozenset[str] | None = None  # None: any


@dataclass
class Family:
    """A grant, and all tokens of it."""

    client_id: str
    scopes: tuple[str, ...]
    resource: str
    is_alive: bool = True
    refresh_token: str = ""  # the one that is good


@dataclass
class Code:
    family: Family
    redirect_uri: str
    challenge: str
    made_at: float


class Refused(Exception):
    def __init__(self, error: str, status: int = 400) -> None:
        super().__init__(error)
        self.error, self.status = error, status


class Grants:
    """Who may have which tokens, in memory."""

    def __init__(self, resource: str) -> None:
        self.issuer = ""
        self.resource = resource
        self.rules = Rules()
        self.clients: dict[str, Client] = {}
        self.families: list[Family] = []
        self.reuses = 0
        self.rotations = 0
        self.errors: list[str] = []
        self.given: list[str] = []  # every secret that it gave, or was shown
        self.has_rotated = threading.Event()
        self._lock = threading.Lock()
        self._codes: dict[str, Code | None] = {}  # None: used
        self._access: dict[str, tuple[Family, float]] = {}
        self._refresh: dict[str, Family] = {}
        self._assertions: set[str] = set()
        self._turns = itertools.count()

    def add_client(self, client_id: str, method: str = "none", **values: Any) -> None:
        """One that somebody has made here by hand."""
        self.clients[client_id] = Client(method, **values)

    def find_scopes(self, token: str) -> frozenset[str] | None:
        """What a good token allows at the resource; None for another."""
        family, ends_at = self._access.get(token, (None, 0.0))
        if family is None or not family.is_alive or time.time() >= ends_at:
            return None
        return frozenset(family.scopes) if family.resource == self.resource else None

    def refuse_access_tokens(self) -> None:
        """Forget those that it gave, though they should be good; grants stay."""
        self._access.clear()

    def end_grants(self) -> None:
        """As when a person withdraws everything."""
        for family in self.families:
            family.is_alive = False

    def take_scope(self, scope: str) -> None:
        """The tokens given by now no longer have it."""
        for family in self.families:
            family.scopes = tuple(one for one in family.scopes if one != scope)

    def describe(self) -> dict[str, Any]:
        rules, at = self.rules, self.issuer
        described = {
            "issuer": at,
            "authorization_endpoint": f"{at}/authorize",
            "token_endpoint": f"{at}/token",
            "registration_endpoint": f"{at}/register" if rules.registers else None,
            "revocation_endpoint": f"{at}/revoke",
            "scopes_supported": list(rules.scopes),
            "response_types_supported": ["code"],
            "token_endpoint_auth_methods_supported": list(rules.methods),
            "code_challenge_methods_supported": None if rules.pkce is None else list(rules.pkce),
            "client_id_metadata_document_supported": bool(rules.documents) or None,
            "authorization_response_iss_parameter_supported": rules.sends_iss or None,
        }
        return _without_nones({**described, **rules.metadata})

    def authorize(self, asked: Mapping[str, str]) -> str:
        """Where the browser is sent. Raises Refused where it may be sent nowhere."""
        redirect_uri, client_id = asked.get("redirect_uri", ""), asked.get("client_id", "")
        client = self._find_client(client_id)
        if client is None or redirect_uri not in client.redirect_uris:
            raise Refused("invalid_request")
        back = {"state": asked.get("state", "")}
        if self.rules.sends_iss:
            back["iss"] = self.rules.iss or self.issuer
        try:
            back["code"] = self._give_code(asked)
        except Refused as refused:
            back["error"] = refused.error
        return f"{redirect_uri}?{urlencode(back)}"

    def _give_code(self, asked: Mapping[str, str]) -> str:
        if self.rules.error:
            raise Refused(self.rules.error)
        challenge, scopes = asked.get("code_challenge", ""), tuple(asked.get("scope", "").split())
        is_pkce = asked.get("code_challenge_method") == "S256" and 43 <= len(challenge) <= 128
        if asked.get("response_type") != "code" or not asked.get("state") or not is_pkce:
            raise Refused("invalid_request")
        if asked.get("resource") != self.resource:
            raise Refused("invalid_target")
        client = self._find_client(asked["client_id"])
        limited = client.scopes if client and client.scopes is not None else set(self.rules.scopes)
        if not set(scopes) <= limited & set(self.rules.scopes):
            raise Refused("invalid_scope")
        family = Family(asked["client_id"], scopes, self.resource)
        code = self._make("code")
        with self._lock:
            self.families.append(family)
            self._codes[code] = Code(family, asked["redirect_uri"], challenge, time.time())
        return code

    def give_tokens(self, request: Seen) -> dict[str, Any]:
        with self._lock:
            client_id, client = self._authenticate(request)
            form = request.form
            if form.get("resource") != self.resource:
                raise Refused("invalid_target")
            match form.get("grant_type"):
                case "authorization_code":
                    family = self._take_code(client_id, form)
                case "refresh_token":
                    family = self._take_refresh_token(client_id, form.get("refresh_token", ""))
                case "client_credentials" if client.may_ask_for_itself and client.method != "none":
                    scopes = tuple(form.get("scope", "").split())
                    if not set(scopes) <= {*self.rules.scopes} - {"offline_access"}:
                        raise Refused("invalid_scope")
                    family = Family(client_id, scopes, self.resource)
                    self.families.append(family)
                    return self._answer_with(family, with_refresh=False)
                case _:
                    raise Refused("unauthorized_client")
            return self._answer_with(family, with_refresh=self.rules.gives_refresh_tokens)

    def _take_code(self, client_id: str, form: Mapping[str, str]) -> Family:
        code = self._codes.get(form.get("code", ""))
        verifier = form.get("code_verifier", "")
        self.given.append(verifier)
        digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        if code is None or time.time() - code.made_at > CODE_SECONDS:
            raise Refused("invalid_grant")
        self._codes[form["code"]] = None
        known = (code.family.client_id, code.redirect_uri, code.challenge)
        if known != (client_id, form.get("redirect_uri"), digest):
            raise Refused("invalid_grant")
        return code.family

    def _take_refresh_token(self, client_id: str, token: str) -> Family:
        family = self._refresh.get(token)
        if family is None or family.client_id != client_id or not family.is_alive:
            raise Refused("invalid_grant")
        if token != family.refresh_token:
            self.reuses += 1
            family.is_alive = False
            raise Refused("invalid_grant")
        self.rotations += 1
        self.has_rotated.set()
        return family

    def _answer_with(self, family: Family, *, with_refresh: bool) -> dict[str, Any]:
        lives = self.rules.lives
        life = lives[next(self._turns) % len(lives)]
        answer: dict[str, Any] = {"access_token": self._make("access"), "token_type": "Bearer"}
        answer |= {"expires_in": life, "scope": " ".join(family.scopes) if self.rules.names_scopes else None}
        if with_refresh and (self.rules.rotates or not family.refresh_token):
            answer["refresh_token"] = family.refresh_token = self._make("refresh")
        answer = _without_nones({**answer, **self.rules.tokens})
        self._access[answer.get("access_token", "")] = family, time.time() + (1e9 if life is None else life)
        if "refresh_token" in answer:
            self._refresh[answer["refresh_token"]] = family
        return answer

    def register(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        method = self.rules.registered_method or wanted.get("token_endpoint_auth_method")
        uris = wanted.get("redirect_uris") or []
        is_asked_for = wanted.get("response_types") == ["code"] and "refresh_token" in wanted["grant_types"]
        if method not in self.rules.methods or not uris or not is_asked_for:
            raise Refused("invalid_client_metadata")
        secret = "" if method == "none" else self._make("client-secret")
        client_id = f"registered-{secrets.token_hex(8)}"
        is_limited = self.rules.keeps_to_registered_scopes and "scope" in wanted
        scopes = frozenset(wanted["scope"].split()) if is_limited else None
        self.clients[client_id] = Client(method, tuple(uris), secret, scopes=scopes)
        answer = {**wanted, "client_id": client_id, "token_endpoint_auth_method": method}
        if secret:
            answer |= {"client_secret": secret, "client_secret_expires_at": 0}
        return _without_nones({**answer, **self.rules.registration})

    def revoke(self, request: Seen) -> None:
        with self._lock:
            client_id, _ = self._authenticate(request)
            token = request.form.get("token", "")
            family = self._refresh.get(token) or self._access.get(token, (None, 0.0))[0]
            if family is not None and family.client_id == client_id:
                family.is_alive = False

    def _authenticate(self, request: Seen) -> tuple[str, Client]:
        """By the one method that the client has, and by no other."""
        form, basic = request.form, request.headers.get("authorization", "")
        if basic:
            text = base64.b64decode(basic.removeprefix("Basic ")).decode()
            client_id, secret = map(unquote, text.split(":", 1))
            method = "client_secret_basic"
            if form.get("client_id", client_id) != client_id or "client_secret" in form:
                raise Refused("invalid_request")
        elif "client_assertion" in form:
            client_id, secret, method = form.get("client_id", ""), "", "private_key_jwt"
        else:
            client_id, secret = form.get("client_id", ""), form.get("client_secret", "")
            method = "client_secret_post" if secret else "none"
        client = self._find_client(client_id)
        if client is None or client.method != method or client.secret != secret:
            raise Refused("invalid_client", 401)
        if method == "private_key_jwt":
            self._check_assertion(client_id, client, form)
        return client_id, client

    def _check_assertion(self, client_id: str, client: Client, form: Mapping[str, str]) -> None:
        try:
            claims = jwt.decode(
                form["client_assertion"],
                client.public_key,
                algorithms=["RS256", "ES256"],
                audience=self.issuer,
                issuer=client_id,
                options={"require": ["exp", "iat", "aud", "sub", "jti"]},
            )
        except jwt.PyJWTError:
            raise Refused("invalid_client", 401) from None
        is_short = claims["exp"] - time.time() <= LONGEST_ASSERTION_SECONDS
        is_new = claims["jti"] not in self._assertions
        if form.get("client_assertion_type") != ASSERTION_TYPE or claims["sub"] != client_id:
            raise Refused("invalid_client", 401)
        if not is_short or not is_new or claims["aud"] != self.issuer:
            raise Refused("invalid_client", 401)
        self._assertions.add(claims["jti"])

    def _find_client(self, client_id: str) -> Client | None:
        if client_id in self.rules.documents:
            return Client("none", self.rules.documents[client_id])
        return self.clients.get(client_id)

    def _make(self, what: str) -> str:
        made = f"{what}-{secrets.token_urlsafe(24)}"
        self.given.append(made)
        return made


def _without_nones(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
