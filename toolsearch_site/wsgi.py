"""The web server's entry point."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolsearch_site.settings")

site = get_wsgi_application()

from catalog.search.wordvectors import find_encoder  # noqa: E402  once the apps are loaded
from toolsearch_site.unchanged import unchanged_first  # noqa: E402

find_encoder()  # opened now, or the first search of this process would wait for it
application = unchanged_first(site)
