"""Of what a program writes before it ends, the line that tells why is the headline."""

import pytest

from catalog.upstream.last_words import find_telling_line

NPM = """npm error code E404
npm error 404 Not Found - GET https://registry.npmjs.org/@acme%2fnothing - Not found
npm error 404
npm error 404  The requested resource '@acme/nothing@*' could not be found.
npm error A complete log of this run can be found in: /home/me/.npm/_logs/2026-01-05-debug-0.log
"""
OLD_NPM = """npm ERR! code ENOENT
npm ERR! syscall open
npm ERR! path /srv/package.json
npm ERR! errno -2
npm ERR! enoent Could not read package.json: Error: ENOENT: no such file or directory

npm ERR! A complete log of this run can be found in:
npm ERR!     /home/me/.npm/_logs/2026-01-05-debug-0.log
"""
NODE = """node:internal/modules/cjs/loader:1143
  throw err;
  ^

Error: Cannot find module '/srv/server.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1140:15) {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v20.11.0
"""
PYTHON = """Traceback (most recent call last):
  File "/srv/server.py", line 2, in <module>
    os.environ["API_KEY"]
KeyError: 'API_KEY'
"""
UV = """  × No solution found when resolving tool dependencies:
  ╰─▶ Because nothing-here was not found in the package registry and you require
      nothing-here, we can conclude that your requirements are unsatisfiable.
"""
DOCKER = """docker: Error response from daemon: pull access denied for acme/nothing.
See 'docker run --help'.
"""


@pytest.mark.parametrize(
    ("stderr", "line"),
    [
        (NPM, "404 Not Found - GET https://registry.npmjs.org/@acme%2fnothing - Not found"),
        (OLD_NPM, "enoent Could not read package.json: Error: ENOENT: no such file or directory"),
        (NODE, "Error: Cannot find module '/srv/server.js'"),
        (PYTHON, "KeyError: 'API_KEY'"),
        (
            UV,
            "Because nothing-here was not found in the package registry and you require nothing-here, "
            "we can conclude that your requirements are unsatisfiable.",
        ),
        (DOCKER, "docker: Error response from daemon: pull access denied for acme/nothing."),
        ("starting\nconfig file is missing\n\n", "config file is missing"),
        ("}\n", "}"),
        ("", ""),
    ],
    ids=["npm", "old npm", "node", "python", "uv", "docker", "other", "nothing telling", "nothing"],
)
def test_headline_is_the_line_that_tells(stderr: str, line: str) -> None:
    assert find_telling_line(stderr) == line
