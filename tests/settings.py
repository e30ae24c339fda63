"""The product's settings on a data folder of the test run's own, and with what only costs time taken out."""

import atexit
import os
import shutil
import tempfile

if "TOOLSEARCH_DATA" not in os.environ:
    _folder = tempfile.mkdtemp(prefix="toolsearch-tests-")
    os.environ["TOOLSEARCH_DATA"] = _folder
    _maker_pid = os.getpid()

    def _remove_folder() -> None:
        if os.getpid() == _maker_pid:
            shutil.rmtree(_folder, ignore_errors=True)

    atexit.register(_remove_folder)

from toolsearch_site.settings import *  # noqa: F403
from toolsearch_site.settings import STORAGES

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    **STORAGES,
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
# Messages of a test run are nobody else's, also where the broker is shared.
CELERY_TASK_DEFAULT_QUEUE = f"tests-{os.getpid()}"
# Static files come from where they are written: nothing is collected for a test run.
WHITENOISE_AUTOREFRESH = True
WHITENOISE_USE_FINDERS = True
# The rules of an instance on one's own machine, also where the run is on PostgreSQL.
STDIO_ENABLED = True
PRIVATE_ADDRESSES_ALLOWED = True
# Nothing is written from another thread: a test that looks at records asks for them to be written.
WRITE_BEHIND_SECONDS = 0
