"""Every example of docs/agents.md runs as it stands, against a running instance and a scripted model."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.scripted_model import DONE, running_model
from tests.harness.instance import ROOT, Instance

pytestmark = pytest.mark.slow

EXAMPLES = re.findall(
    r"^## ([^\n]+)\n(?:(?!^## ).)*?^```(python|bash)\n(.*?)^```$",
    (ROOT / "docs" / "agents.md").read_text(),
    re.MULTILINE | re.DOTALL,
)


@pytest.fixture(scope="module")
def environment(shared_instance: Instance) -> Iterator[dict[str, str]]:
    with running_model() as model:
        yield {
            **shared_instance.environment,
            "TOOLSEARCH_URL": shared_instance.url,
            "TOOLSEARCH_KEY": shared_instance.manage("create_key", "docs").stdout.strip(),
            "ANTHROPIC_BASE_URL": model,
            "ANTHROPIC_API_KEY": "none",
            "OPENAI_BASE_URL": f"{model}/v1",
            "OPENAI_API_KEY": "none",
        }


def run(language: str, code: str, environment: dict[str, str], folder: Path) -> str:
    script = folder / "example"
    script.write_text(code)
    interpreter = sys.executable if language == "python" else "bash"
    done = subprocess.run(
        [interpreter, str(script)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_is_an_example_of_every_kind() -> None:
    assert [title for title, *_ in EXAMPLES] == [
        "The four calls, with curl",
        "Anthropic Messages API, our search",
        "Anthropic Messages API, hosted search",
        "OpenAI Responses API, our search",
        "OpenAI Responses API, hosted search",
        "Any other model",
    ]


@pytest.mark.parametrize(
    ("language", "code"), [example[1:] for example in EXAMPLES], ids=[title for title, *_ in EXAMPLES]
)
def test_example_runs(language: str, code: str, environment: dict[str, str], tmp_path: Path) -> None:
    printed = run(language, code, environment, tmp_path)
    if language == "python":
        assert printed.strip() == DONE
    else:
        assert "polling again: 304" in printed
        assert '"outcome":"matched"' in printed
        assert '"turn":1' in printed
