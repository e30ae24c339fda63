"""The ASGI entry point of the gateway."""

import gc
import os

import django

from toolsearch_site.cluster.parent_death import die_with_parent
from toolsearch_site.cluster.undumpable import make_undumpable

make_undumpable()
die_with_parent()  # before the long imports, during which the parent may end
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolsearch_site.settings")
django.setup(set_prefix=False)

from django.conf import settings  # noqa: E402  once the apps are loaded

from catalog.selectors.encoder import load_encoder  # noqa: E402
from sessions.gateway.application import Gateway, Options  # noqa: E402
from toolsearch_site.cluster.heartbeat import product_version  # noqa: E402
from toolsearch_site.cluster.programs import GATEWAY_THREADS  # noqa: E402
from toolsearch_site.data_folder import read_keys  # noqa: E402
from toolsearch_site.monitoring.metrics import count_call  # noqa: E402

read_keys()

# Opened now, or the first requests of this process would wait for it.
load_encoder()

application = Gateway(
    Options(
        process=f"{settings.NODE}:{os.getpid()}",
        version=product_version(),
        threads=GATEWAY_THREADS,
        body_seconds=settings.CLIENT_TIMEOUT_SECONDS,
        hosts=tuple(settings.ALLOWED_HOSTS),
        count_call=count_call,
    )
)

# Freeze loaded code: otherwise every full garbage collection scans it, for a tenth of a second.
gc.collect()
gc.freeze()
