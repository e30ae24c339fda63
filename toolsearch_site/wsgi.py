"""The web server's entry point."""

import gc
import os

from django.core.wsgi import get_wsgi_application

from toolsearch_site.undumpable import make_undumpable

make_undumpable()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolsearch_site.settings")

site = get_wsgi_application()

from django.urls import get_resolver  # noqa: E402  once the apps are loaded

from catalog.search.wordvectors import find_encoder  # noqa: E402
from toolsearch_site.http_request import Request  # noqa: E402
from toolsearch_site.unchanged import UnchangedFirst  # noqa: E402
from toolsearch_site.whole_answers import whole_answers  # noqa: E402

site.request_class = Request

# Opened now, or the first requests of this process would wait for it.
find_encoder()
_ = get_resolver().url_patterns

application = UnchangedFirst(whole_answers(site))

# Code stays until the end: each full collection would look through it anew, a tenth of a second at a time.
gc.collect()
gc.freeze()
