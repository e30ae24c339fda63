"""The catalog's pages, grouped by what they show."""

from django.urls import path

from catalog.views import changes, policies, servers, tools

urlpatterns = [
    path("servers/", servers.server_list, name="server_list"),
    # A server's name may hold a slash: registries name servers like `org.example/weather`.
    path("servers/<path:name>/refresh/", servers.server_refresh, name="server_refresh"),
    path("servers/<path:name>/", servers.server_detail, name="server_detail"),
    path("tools/", tools.tool_list, name="tool_list"),
    path("tools/<str:qualified_name>/", tools.tool_detail, name="tool_detail"),
    path("tools/<str:qualified_name>/settings/", tools.tool_settings_change, name="tool_settings_change"),
    path("policies/", policies.policy_list, name="policy_list"),
    path("policies/<slug:slug>/", policies.policy_detail, name="policy_detail"),
    path("changes/", changes.change_list, name="change_list"),
]
