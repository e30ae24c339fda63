"""The product's settings on a data folder of the test run's own, and with what only costs time taken out."""

import atexit
import os
import shutil
import tempfile

if "TOOLSEARCH_DATA" not in os.environ:
    _folder = tempfile.mkdtemp(prefix="toolsearch-tests-")
    os.environ["TOOLSEARCH_DATA"] = _folder
    _maker_pid = os.getpid()
    atexit.register(lambda: os.getpid() == _maker_pid and shutil.rmtree(_folder, ignore_errors=True))

from toolsearch_site.settings import *  # noqa: E402, F403
from toolsearch_site.settings import STORAGES  # noqa: E402

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    **STORAGES,
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
# Messages of a test run are nobody else's, also where the broker is shared.
CELERY_TASK_DEFAULT_QUEUE = f"tests-{os.getpid()}"
