"""The WSGI entry point."""

import gc
import os

from django.core.wsgi import get_wsgi_application

from toolsearch_site.cluster.undumpable import make_undumpable

make_undumpable()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolsearch_site.settings")

site = get_wsgi_application()

from django.urls import get_resolver  # noqa: E402  once the apps are loaded

from catalog.process_memory import remember  # noqa: E402
from catalog.selectors.encoder import load_encoder  # noqa: E402
from toolsearch_site.data_folder import read_keys  # noqa: E402
from toolsearch_site.edge.buffered_response import buffer_responses  # noqa: E402
from toolsearch_site.edge.http_request import Request  # noqa: E402
from toolsearch_site.edge.not_modified import NotModified  # noqa: E402

read_keys()
site.request_class = Request

# Opened now, or the first requests of this process would wait for it.
load_encoder()
_ = get_resolver().url_patterns

application = NotModified(buffer_responses(site))
remember("polls that found nothing new", application.forget)

# Freeze loaded code: otherwise every full garbage collection scans it, for a tenth of a second.
gc.collect()
gc.freeze()
