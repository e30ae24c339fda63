"""The product's settings on a data folder of the test run's own, and with what only costs time taken out."""

import os

from tests.harness.workers import find_data_folder

os.environ["TOOLSEARCH_DATA"] = str(find_data_folder())

from toolsearch_site.settings import *  # noqa: F403
from toolsearch_site.settings import CACHES, STORAGES

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    **STORAGES,
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
# Messages and counters of a process are nobody else's, also where the broker and the cache are shared.
CELERY_TASK_DEFAULT_QUEUE = f"tests-{os.getpid()}"
CACHES = {"default": {**CACHES["default"], "KEY_PREFIX": CELERY_TASK_DEFAULT_QUEUE}}
# Static files come from where they are written: nothing is collected for a test run.
WHITENOISE_AUTOREFRESH = True
WHITENOISE_USE_FINDERS = True
# The rules of an instance on one's own machine, also where the run is on PostgreSQL.
STDIO_ENABLED = True
REFERENCES = ("*",)
PRIVATE_ADDRESSES_ALLOWED = True
NODES_KEEP_OWN_INDEX = False
SECURE_SSL_REDIRECT = False
# Nothing is written from another thread: a test that looks at records asks for them to be written.
WRITE_BEHIND_SECONDS = 0
