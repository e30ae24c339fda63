"""URLs of the catalog's pages, grouped by object."""

from django.urls import path

from catalog.views import (
    bulk,
    changes,
    exports,
    keys,
    models,
    policies,
    policy_editing,
    review,
    saved_queries,
    server_adding,
    server_editing,
    servers,
    tool_loading,
    tools,
)

urlpatterns = [
    path("servers/", servers.server_list, name="server_list"),
    # Beside the servers and not below them, where they would hide servers of those names.
    path("server-map/<path:name>/", servers.server_map, name="server_map"),
    path("server-options/", servers.server_options, name="server_options"),
    path("add-server/", server_adding.server_add, name="server_add"),
    path("add-server/paste/", server_adding.server_paste, name="server_paste"),
    path("add-server/form/", server_adding.server_create, name="server_create"),
    # A server's name may hold a slash: registries name servers like `org.example/weather`.
    path("servers/<path:name>/refresh/", servers.server_refresh, name="server_refresh"),
    path("servers/<path:name>/loading/", server_editing.server_loading, name="server_loading"),
    path("servers/<path:name>/enabled/", server_editing.server_enabled, name="server_enabled"),
    path("servers/<path:name>/interval/", server_editing.server_interval, name="server_interval"),
    path("servers/<path:name>/delete/", server_editing.server_delete, name="server_delete"),
    path("servers/<path:name>/", servers.server_detail, name="server_detail"),
    path("tools/", tools.tool_list, name="tool_list"),
    path("tools.csv", exports.tools_csv, name="tools_csv"),
    path("tools.json", exports.tools_json, name="tools_json"),
    path("bulk-edit/", bulk.bulk_edit, name="bulk_edit"),
    path("tools/<str:qualified_name>/", tools.tool_detail, name="tool_detail"),
    path("tools/<str:qualified_name>/loading/", tool_loading.tool_loading, name="tool_loading"),
    path("tools/<str:qualified_name>/settings/", tools.tool_settings_change, name="tool_settings_change"),
    path("policies/", policies.policy_list, name="policy_list"),
    # Beside the policies and not below them, where it would hide a policy of that name.
    path("new-policy/", policy_editing.policy_create, name="policy_create"),
    path("policies/<slug:slug>/", policies.policy_detail, name="policy_detail"),
    path("policies/<slug:slug>/edit/", policy_editing.policy_edit, name="policy_edit"),
    path("policies/<slug:slug>/preview/", policy_editing.policy_preview, name="policy_preview"),
    path("policies/<slug:slug>/roll-back/", policy_editing.policy_roll_back, name="policy_roll_back"),
    path("policies/<slug:slug>/delete/", policy_editing.policy_delete, name="policy_delete"),
    path("models/", models.model_list, name="model_list"),
    path("models/<int:model_id>/", models.model_edit, name="model_edit"),
    path("models/<int:model_id>/delete/", models.model_delete, name="model_delete"),
    # Below the test console, whose second page it is.
    path("console/saved/", saved_queries.saved_list, name="saved_list"),
    path("console/saved/save/", saved_queries.saved_save, name="saved_save"),
    path("console/saved/run/", saved_queries.saved_run, name="saved_run"),
    path("console/saved/<int:saved_id>/delete/", saved_queries.saved_delete, name="saved_delete"),
    path("review/", review.review_list, name="review"),
    path("review/count/", review.review_count, name="review_count"),
    path("review/approve/", review.review_approve, name="review_approve"),
    path("review/approve-server/", review.review_approve_server, name="review_approve_server"),
    path("keys/", keys.key_list, name="key_list"),
    path("keys/<int:key_id>/revoke/", keys.key_revoke, name="key_revoke"),
    path("changes/", changes.change_list, name="change_list"),
    path("changes/<int:change_id>/undo/", changes.change_undo, name="change_undo"),
]
