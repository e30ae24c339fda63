"""The snippets of the page that connects an agent run as they are copied, against a running instance."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sessions.domain.snippets import GUIDES, Guide
from tests.docs.scripted_model import DONE, running_model
from tests.harness.instance import Instance

INTERPRETERS = {"curl": "bash", "anthropic": sys.executable, "openai": sys.executable}


@pytest.mark.slow
@pytest.mark.parametrize("guide", GUIDES, ids=[guide.slug for guide in GUIDES])
def test_snippet_runs_as_it_is_copied(guide: Guide, shared_instance: Instance, tmp_path: Path) -> None:
    key = shared_instance.manage("create_key", "snippet").stdout.strip()
    script = tmp_path / "snippet"
    script.write_text(guide.fill(address=shared_instance.url, key=key, query="create issue"))
    with running_model() as model:
        models = {
            "ANTHROPIC_BASE_URL": model,
            "ANTHROPIC_API_KEY": "none",
            "OPENAI_BASE_URL": f"{model}/v1",
            "OPENAI_API_KEY": "none",
        }
        done = subprocess.run(
            [INTERPRETERS[guide.slug], str(script)],
            env={"PATH": os.environ["PATH"], **models},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr
    if guide.slug == "curl":
        assert '"outcome":"matched"' in done.stdout
        assert '"turn":1' in done.stdout
    else:
        assert done.stdout.strip() == DONE
