"""What the gateway's processes are doing, and who calls them, for pages."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, QuerySet, Sum

from catalog.models import Server
from sessions.models import BreakerState, GatewayClient, GatewayProcess, OpenLease, UpstreamState
from sessions.selectors.stamps import age_shown, stamp_of

SEEN_WITHIN = timedelta(seconds=10)
CLIENT_ROWS, LEASE_ROWS = 50, 200


@dataclass(frozen=True, slots=True)
class GatewayState:
    """Connections are those of processes that were seen lately: others are gone, or soon will be. Of very
    many clients and connections there are the first.
    """

    processes: Sequence[GatewayProcess]
    clients: Sequence[GatewayClient]
    more_clients: int
    leases: Sequence[OpenLease]
    more_leases: int

    @property
    def open_calls(self) -> int:
        return sum(process.open_calls for process in self.processes)

    @property
    def open_streams(self) -> int:
        return sum(process.open_streams for process in self.processes)

    def stamp(self, *, now: datetime) -> str:
        """Differs whenever a page that shows all of it would."""
        processes = [(each.pk, each.open_calls, each.open_streams) for each in self.processes]
        clients = [
            (each.pk, each.key.name, each.version, _age(each.last_call_at, now)) for each in self.clients
        ]
        leases = [
            (
                *(each.pk, each.protocol_version, each.open_calls, each.close_requested),
                *(_age(each.last_used_at, now), _age(each.opened_at, now)),
            )
            for each in self.leases
        ]
        return stamp_of(processes, clients, self.more_clients, leases, self.more_leases)


@dataclass(frozen=True, slots=True)
class UpstreamFacts:
    """What the gateway knows of one server. `breaker` is the state of the process that refuses calls the
    longest, None while none does; `is_refusing` is False once its time is up. `refused` is how often each
    thing could not be passed on.
    """

    breaker: UpstreamState | None
    is_refusing: bool
    refused: Sequence[tuple[str, int]]
    leases: int
    open_calls: int

    @property
    def stamp(self) -> str:
        state = self.breaker
        breaker = state and (state.breaker, state.failures, state.open_until, state.error, self.is_refusing)
        return stamp_of(breaker, self.refused, self.leases, self.open_calls)


def read_gateway(*, now: datetime) -> GatewayState:
    """Three reads, two more where there is more than a page shows."""
    processes = list(_alive(now).order_by("process"))
    clients = list(GatewayClient.objects.select_related("key")[: CLIENT_ROWS + 1])
    open_leases = OpenLease.objects.filter(process__in=processes)
    leases = list(
        open_leases.select_related("server", "key").order_by("server__name", "opened_at")[: LEASE_ROWS + 1]
    )
    return GatewayState(
        processes=processes,
        clients=clients[:CLIENT_ROWS],
        more_clients=GatewayClient.objects.count() - CLIENT_ROWS if len(clients) > CLIENT_ROWS else 0,
        leases=leases[:LEASE_ROWS],
        more_leases=open_leases.count() - LEASE_ROWS if len(leases) > LEASE_ROWS else 0,
    )


def read_upstream(server: Server, *, now: datetime) -> UpstreamFacts:
    alive = _alive(now)
    states = list(UpstreamState.objects.filter(server=server, process__in=alive))
    tripped = [state for state in states if state.breaker != BreakerState.CLOSED]
    breaker = max(tripped, key=_refuses_until, default=None)
    refused: Counter[str] = Counter()
    for state in states:
        refused.update(state.refused)
    leases = OpenLease.objects.filter(server=server, process__in=alive).aggregate(
        leases=Count("pk"), open_calls=Sum("open_calls", default=0)
    )
    return UpstreamFacts(
        breaker=breaker,
        is_refusing=breaker is not None and _refuses_until(breaker) > now.timestamp(),
        refused=refused.most_common(),
        **leases,
    )


def _alive(now: datetime) -> QuerySet[GatewayProcess]:
    return GatewayProcess.objects.filter(seen_at__gte=now - SEEN_WITHIN)


def _refuses_until(state: UpstreamState) -> float:
    return state.open_until.timestamp() if state.open_until else 0.0


def _age(moment: datetime | None, now: datetime) -> tuple[str, int] | None:
    return None if moment is None else age_shown(moment, now=now)
