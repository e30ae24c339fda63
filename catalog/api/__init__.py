"""The catalog's part of the REST API, one module per subject."""

from catalog.api.config import router as config_router
from catalog.api.connection_tests import router as connection_tests_router
from catalog.api.health import router as health_router
from catalog.api.keys import router as keys_router
from catalog.api.models import router as models_router
from catalog.api.policies import router as policies_router
from catalog.api.refreshes import router as refreshes_router
from catalog.api.review import router as review_router
from catalog.api.servers import router as servers_router
from catalog.api.tools import router as tools_router

# A server's name may hold a `/`: the addresses below a server come before the server's own.
routers = (
    health_router,
    tools_router,
    refreshes_router,
    connection_tests_router,
    servers_router,
    policies_router,
    config_router,
    models_router,
    review_router,
    keys_router,
)
