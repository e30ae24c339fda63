"""The WSGI application of each web process: the site behind the limits on slow clients."""

import sys

from toolsearch_site.cluster.parent_death import die_with_parent

die_with_parent()  # before the long imports, during which the parent may end

from toolsearch_site.wsgi import application as site  # noqa: E402, I001  loads the apps, which the others need

from django.conf import settings  # noqa: E402

from toolsearch_site.edge import connection_watch  # noqa: E402
from toolsearch_site.edge.granian_server import WAITING_REQUESTS, count_connections  # noqa: E402
from toolsearch_site.cluster.programs import PLACES_FOR_POLLS, WEB_THREADS  # noqa: E402
from toolsearch_site.edge.slow_clients import SlowClients  # noqa: E402

# A tenth of Python's default: a poll has to wait for this long for each thread that computes beside it.
sys.setswitchinterval(0.0005)

application = SlowClients(
    site,
    working_at_once=WEB_THREADS,
    waiting_at_once=WAITING_REQUESTS,
    polling_at_once=PLACES_FOR_POLLS,
    is_repeated_poll=site.is_repeated_poll,
)
connection_watch.start(
    patience_seconds=settings.CLIENT_TIMEOUT_SECONDS, many=count_connections() * 3 // 4, clients=application
)
