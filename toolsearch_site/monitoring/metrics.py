"""`/metrics` for Prometheus: counters of this node's processes, and the state of the deployment."""

import hmac
import time
from collections.abc import Callable, Iterator
from functools import cache

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from catalog.access.callers import ADMIN_KEY, read_bearer
from catalog.domain.errors import ToolSearchError
from catalog.selectors.encoder import EncoderStatus, read_encoder_status
from catalog.services import reindex
from sessions.selectors.gateway_load import GatewayLoad, read_gateway_load
from toolsearch_site.api.mount import on_engine_error
from toolsearch_site.monitoring.shared_counts import SharedCounts
from toolsearch_site.monitoring.system import System, read_system

GetResponse = Callable[[HttpRequest], HttpResponse]

PATH = "/metrics"
# By the route's last step; whatever else the API answers is `api`, the rest is the console's.
KINDS = {"tools": "poll", "search": "search"}
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

_own = CollectorRegistry()
REQUESTS = Counter("toolsearch_requests", "Requests answered.", ["kind", "method", "status"], registry=_own)
SECONDS = Histogram(
    "toolsearch_request_seconds", "Time to the answer.", ["kind"], buckets=BUCKETS, registry=_own
)
GATEWAY_CALLS = Counter(
    "toolsearch_gateway_calls", "Calls of tools through the gateway.", ["outcome", "via"], registry=_own
)
GATEWAY_ADDED = Histogram(
    "toolsearch_gateway_added_seconds",
    "Of a call's time, what its server did not take.",
    buckets=BUCKETS,
    registry=_own,
)
process_counts = SharedCounts(settings.METRICS_FOLDER, (REQUESTS, SECONDS, GATEWAY_CALLS, GATEWAY_ADDED))


def measured(get_response: GetResponse) -> GetResponse:
    """Middleware: counts and times every request, and answers `/metrics` itself."""

    def answer(request: HttpRequest) -> HttpResponse:
        if request.path == PATH:
            return show_metrics(request)
        started = time.perf_counter()
        response = get_response(request)
        match = request.resolver_match
        kind = _kind_of(match.route) if match else "file"
        count_response(
            kind, _method_of(request.method), response.status_code, seconds=time.perf_counter() - started
        )
        return response

    return answer


def count_response(kind: str, method: str, status: int, *, seconds: float) -> None:
    """Count one response."""
    process_counts.keep_writing()
    _counter(kind, method, status).inc()
    _timer(kind).observe(seconds)


def count_refusal(method: str, status: int) -> None:
    """Count a request that was refused before the site saw it, or whose response was dropped."""
    process_counts.keep_writing()
    _counter("refused", _method_of(method), status).inc()


def count_call(outcome: str, via: str, added_seconds: float) -> None:
    """Count one call through the gateway, which its process does. `added_seconds` is its time without the
    server's.
    """
    process_counts.keep_writing()
    _call_counter(outcome, via).inc()
    GATEWAY_ADDED.observe(max(0.0, added_seconds))


def _method_of(method: str | None) -> str:
    return method if method in METHODS else "other"


@cache
def _counter(kind: str, method: str, status: int) -> Counter:
    """The counter of these labels, cached: the lookup takes longer than counting."""
    return REQUESTS.labels(kind, method, status)


@cache
def _call_counter(outcome: str, via: str) -> Counter:
    return GATEWAY_CALLS.labels(outcome, via)


@cache
def _timer(kind: str) -> Histogram:
    return SECONDS.labels(kind)


def show_metrics(request: HttpRequest) -> HttpResponse:
    """For callers with the metrics token or an admin key."""
    try:
        _admit(request)
    except ToolSearchError as refusal:
        return on_engine_error(request, refusal)
    registry = CollectorRegistry()
    registry.register(process_counts)
    registry.register(DeploymentCollector())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


class DeploymentCollector:
    """Gauges read from the database at each scrape: the same on every node, except for the index, which is
    its own.
    """

    def collect(self) -> Iterator[Metric]:
        try:
            system, lag, load = read_system(), reindex.read_index_lag(), read_gateway_load(timezone.now())
            encoder = read_encoder_status()
        except DatabaseError:
            yield _gauge("database_up", "Whether the database answers.", 0)
            return
        yield _gauge("database_up", "Whether the database answers.", 1)
        yield _gauge("index_present", "Whether this node has a search index.", lag is not None)
        yield _gauge(
            "index_lag_versions",
            "Versions of the catalog that this node's index is behind.",
            lag.behind if lag else system.catalog_version,
        )
        yield from _describe(system)
        yield from _describe_gateway(load)
        yield from _describe_encoder(encoder)


def _describe(system: System) -> Iterator[Metric]:
    yield _gauge("catalog_version", "The catalog's version.", system.catalog_version)
    yield _gauge(
        "decision_lag_policies", "Policies whose decisions are on their way.", system.policies_behind
    )
    yield _gauge("decision_lag_seconds", "For how long they have been.", system.decision_lag_seconds)
    yield _gauge("nodes", "Nodes that told of themselves in the last day.", len(system.nodes))
    yield _gauge("nodes_late", "Of these, nodes that stopped.", system.late_nodes)
    yield _gauge("refreshes_last_hour", "Refreshes that ended.", system.refreshes)
    yield _gauge("refreshes_failed_last_hour", "Of these, refreshes that failed.", system.failed_refreshes)
    jobs = GaugeMetricFamily("toolsearch_jobs", "Open jobs.", labels=["kind", "state"])
    age = GaugeMetricFamily("toolsearch_queue_age_seconds", "Age of the oldest due job.", labels=["kind"])
    for queue in system.queues:
        jobs.add_metric([queue.kind, "waiting"], queue.waiting)
        jobs.add_metric([queue.kind, "running"], queue.running)
        age.add_metric([queue.kind], queue.oldest_seconds)
    yield jobs
    yield age


def _describe_gateway(load: GatewayLoad) -> Iterator[Metric]:
    yield _gauge("gateway_processes", "Gateway processes that report.", load.processes)
    yield _gauge("gateway_open_leases", "Their connections to servers.", load.leases)
    yield _gauge("gateway_open_streams", "Their open streams to clients.", load.streams)
    yield _gauge("gateway_open_calls", "Calls under way in them.", load.calls)


def _describe_encoder(encoder: EncoderStatus) -> Iterator[Metric]:
    yield _gauge("vectors_missing", "Tools without a vector of the encoder in force.", encoder.missing)
    yield _gauge(
        "encoder_failing", "Whether the encoder cannot be used at the moment.", bool(encoder.problem)
    )
    failures = CounterMetricFamily(
        "toolsearch_encoder_endpoint_failures", "Queries that the encoder's endpoint failed, on this node."
    )
    failures.add_metric([], encoder.failures)
    yield failures


def _gauge(name: str, meaning: str, value: float) -> Metric:
    return GaugeMetricFamily(f"toolsearch_{name}", meaning, value=float(value))


def _admit(request: HttpRequest) -> None:
    token = settings.METRICS_TOKEN
    if not token or not hmac.compare_digest(read_bearer(request).encode(), token.encode()):
        ADMIN_KEY(request)


@cache
def _kind_of(route: str) -> str:
    if not route.startswith("api/"):
        return "console"
    return KINDS.get(route.rpartition("/")[2], "api") if "<" in route else "api"
