"""Agents at work on a running instance: for pages that show what agents do."""

from datetime import UTC, datetime

from tests.harness.instance import Instance
from tests.harness.rest import RestClient

QUESTIONS = [
    ["create a pull request", "list the files of a repository"],
    ["send a message to a channel"],
    ["play some jazz"],
    ["create an invoice", "refund a payment"],
    ["+github merge"],
]


def connect(instance: Instance, name: str = "coding-agent") -> RestClient:
    key = instance.manage("create_key", name).stdout.strip()
    return RestClient(instance.port, key)


def begin(rest: RestClient, name: str, *, model: str = "claude-sonnet-4-5") -> str:
    """A new conversation; the id of its session."""
    return str(rest.post("/sessions", {"external_id": name, "model": model}, status=201)["id"])


def converse(rest: RestClient, session_id: str) -> None:
    """Some turns with searches, one that finds nothing, a snapshot, a compaction and an unloaded tool."""
    path, context_used = f"/sessions/{session_id}", 9_000
    for questions in QUESTIONS:
        found = [rest.post(f"{path}/search", {"query": question}) for question in questions]
        called = [one["loaded"][0] for one in found if one["loaded"]]
        context_used += 11_500
        rest.post(f"{path}/turns", {"context_used": context_used, "called": called})
    rest.post(f"{path}/snapshots", {}, status=201)
    loaded = rest.get(path)["loaded"]
    names = [tool["name"] for tool in loaded if tool["reason"] == "discovered"]
    rest.post(f"{path}/unload", {"names": names[-2:]})
    rest.post(f"{path}/compact", {})


def work_a_day(instance: Instance) -> str:
    """Three conversations, and counts of the hours before. Answers with the address of one's page."""
    rest = connect(instance)
    sessions = [begin(rest, name) for name in ("refactor-billing", "weekly-report", "onboarding-chat")]
    for session_id in sessions:
        converse(rest, session_id)
    _count_hours_before(instance)
    return f"/sessions/{sessions[-1]}/"


def _count_hours_before(instance: Instance) -> None:
    """What nobody can make by REST now: a week in which agents worked by day."""
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0).isoformat()
    code = (
        "from datetime import datetime, timedelta; from sessions.models import ActivityHour;"
        f"now = datetime.fromisoformat('{hour}');"
        "ActivityHour.objects.bulk_create([ActivityHour(hour=now - timedelta(hours=back),"
        " sessions=(back * 7) % 5 + 9 * (3 < back % 24 < 13),"
        " searches=(back * 13) % 31 + 40 * (3 < back % 24 < 13),"
        " misses=(back * 13) % 31 // 6) for back in range(1, 168)], ignore_conflicts=True)"
    )
    assert instance.manage("shell", "-c", code).returncode == 0
