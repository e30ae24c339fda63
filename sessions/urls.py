"""Agents' pages: their sessions and the test console."""

from django.urls import path

from sessions.views import agent_answers, calls, console, gateway, sessions, tool_gateway, tool_use

urlpatterns = [
    path("sessions/", sessions.session_list, name="session_list"),
    path("sessions/<uuid:session_id>/", sessions.session_detail, name="session_detail"),
    path("sessions/<uuid:session_id>/reset/", sessions.session_reset, name="session_reset"),
    path("sessions/<uuid:session_id>/load/", console.session_load, name="session_load"),
    path("sessions/<uuid:session_id>/unload/", sessions.session_unload, name="session_unload"),
    path("sessions/<uuid:session_id>/delete/", sessions.session_delete, name="session_delete"),
    path("tools/<str:qualified_name>/sessions/", tool_use.tool_sessions, name="tool_sessions"),
    path("tools/<str:qualified_name>/gateway/", tool_gateway.tool_gateway, name="tool_gateway"),
    path("calls/", calls.call_list, name="call_list"),
    path("calls/<int:call_id>/", calls.call_detail, name="call_detail"),
    path("calls.csv", calls.calls_csv, name="calls_csv"),
    path("calls.json", calls.calls_json, name="calls_json"),
    path("console/", console.console, name="console"),
    path("gateway/", gateway.gateway, name="gateway"),
    path("gateway/servers/<path:name>/", gateway.server_gateway, name="server_gateway"),
    path("gateway/connections/<uuid:lease_id>/close/", gateway.lease_close, name="lease_close"),
    path("policies/<slug:slug>/agent/", agent_answers.agent_answer, name="agent_answer"),
    path("policies/<slug:slug>/agent.json", agent_answers.agent_answer_json, name="agent_answer_json"),
]
