"""The requests that are open, so that those of a key that is revoked end, and who listens for changes."""

import hashlib
import logging
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import NamedTuple
from weakref import WeakKeyDictionary

import anyio
from django.utils import timezone
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged
from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

from catalog.domain.errors import ToolSearchError
from catalog.models import ApiKey
from catalog.process_memory import remember
from sessions.gateway.clients import Context, caller_of
from sessions.gateway.threads import Threads
from sessions.offers.gateway_features import features_of
from sessions.offers.gateway_offer import GatewayOffer, gateway_offer_of
from sessions.offers.versions import read_versions

logger = logging.getLogger(__name__)
_feature_digests: WeakKeyDictionary[GatewayOffer, str] = WeakKeyDictionary()
remember("digests of resources and prompts", _feature_digests.clear)


class OpenRequests:
    """The requests under way, by key."""

    def __init__(self) -> None:
        self._scopes: defaultdict[int, set[anyio.CancelScope]] = defaultdict(set)
        self._listening: Counter[int] = Counter()

    @asynccontextmanager
    async def opened(self, key_id: int) -> AsyncIterator[anyio.CancelScope]:
        scopes = self._scopes[key_id]
        with anyio.CancelScope() as scope:
            scopes.add(scope)
            try:
                yield scope
            finally:
                scopes.discard(scope)
                if not scopes:
                    self._scopes.pop(key_id, None)

    def keys(self) -> list[int]:
        return list(self._scopes)

    def count(self) -> int:
        return sum(map(len, self._scopes.values()))

    def end(self, key_ids: Iterable[int]) -> None:
        for key_id in key_ids:
            for scope in list(self._scopes.get(key_id, ())):
                scope.cancel()


class ListDigests(NamedTuple):
    """What tells a policy's lists of tools, and of resources and prompts, from the ones before."""

    tools: str
    features: str


class Listeners:
    """Streams that wait for changes, by policy: a change of one says nothing to another's."""

    def __init__(self, threads: Threads, *, most_of_a_key: int) -> None:
        self._threads = threads
        self._most_of_a_key = most_of_a_key
        self._buses: dict[int, InMemorySubscriptionBus] = {}
        self._handlers: dict[int, ListenHandler] = {}
        self._digests: dict[int, ListDigests] = {}
        self._of_policy: Counter[int] = Counter()
        self._of_key: Counter[int] = Counter()

    @property
    def count(self) -> int:
        return self._of_policy.total()

    def policies(self) -> list[int]:
        return list(self._of_policy)

    async def listen(
        self, context: Context, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Single resources are not watched, which the acknowledgement tells."""
        caller = caller_of(context)
        policy_id, key_id = caller.policy_id, caller.key_id
        digests = await self._threads.run(digest_lists, caller.offer)
        if self._of_key[key_id] >= self._most_of_a_key:
            raise TooManyStreams(f"This key listens {self._most_of_a_key} times already: end a stream first.")
        self._digests.setdefault(policy_id, digests)
        handler = self._handler(policy_id)
        self._of_policy[policy_id] += 1
        self._of_key[key_id] += 1
        wanted = params.notifications.model_copy(update={"resource_subscriptions": None})
        try:
            return await handler(context, params.model_copy(update={"notifications": wanted}))
        finally:
            self._leave(policy_id, key_id)

    async def announce(self, digests: dict[int, ListDigests]) -> None:
        """Tell the listeners of each policy whose lists are others now."""
        for policy_id, now in digests.items():
            bus, known = self._buses.get(policy_id), self._digests.get(policy_id)
            if bus is None or known is None:
                continue
            self._digests[policy_id] = now
            if now.tools != known.tools:
                await bus.publish(ToolsListChanged())
            if now.features != known.features:
                await bus.publish(PromptsListChanged())
                await bus.publish(ResourcesListChanged())

    def close(self) -> None:
        for handler in self._handlers.values():
            handler.close()

    def _handler(self, policy_id: int) -> ListenHandler:
        if policy_id not in self._handlers:
            self._buses[policy_id] = InMemorySubscriptionBus()
            self._handlers[policy_id] = ListenHandler(self._buses[policy_id])
        return self._handlers[policy_id]

    def _leave(self, policy_id: int, key_id: int) -> None:
        self._of_policy[policy_id] -= 1
        self._of_key[key_id] -= 1
        if not self._of_key[key_id]:
            del self._of_key[key_id]
        if not self._of_policy[policy_id]:
            del self._of_policy[policy_id], self._buses[policy_id], self._handlers[policy_id]
            self._digests.pop(policy_id, None)


class TooManyStreams(ToolSearchError):
    """A key has as many streams open as it may."""


def find_revoked(key_ids: Iterable[int]) -> set[int]:
    """Those that are not in force any more."""
    wanted = set(key_ids)
    living = ApiKey.objects.usable(now=timezone.now()).filter(pk__in=wanted)
    return wanted - set(living.values_list("pk", flat=True)) if wanted else set()


def read_digests(policy_ids: Iterable[int]) -> dict[int, ListDigests]:
    """By policy. One that is gone is left out."""
    found: dict[int, ListDigests] = {}
    for policy_id in policy_ids:
        try:
            found[policy_id] = digest_lists(gateway_offer_of(policy_id, versions=read_versions(policy_id)))
        except ToolSearchError as problem:
            logger.info("a policy's list cannot be read now: %s", problem)
    return found


def digest_lists(offer: GatewayOffer) -> ListDigests:
    """Resources and prompts may be large, and a change of theirs makes another offer: they are read once."""
    features = _feature_digests.get(offer)
    if features is None:
        found = features_of(offer)
        written = repr((found.resources, found.templates, found.prompts)).encode(errors="surrogatepass")
        features = _feature_digests[offer] = hashlib.sha256(written).hexdigest()
    return ListDigests(offer.offer.digest, features)
