"""Wiring: settings, routes, the web and worker entry points."""

from toolsearch_site.celery import app as celery_app

__all__ = ["celery_app"]
