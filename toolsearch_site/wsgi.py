"""The web server's entry point."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolsearch_site.settings")

application = get_wsgi_application()
