#!/bin/sh
# Installs the agent clients, the inspector and the conformance suite that the tests marked `clients` run, into
# var/test-clients. Does nothing when they are there.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
target="$root/var/test-clients"
case "$(uname -m)" in
aarch64 | arm64) chip=arm64 ;;
*) chip=x64 ;;
esac
# The packages with the programs themselves: the usual ones fetch or link these in an install script.
npm_packages="
node-linux-$chip@22.23.3
@anthropic-ai/claude-code-linux-$chip@2.1.326
codex@npm:@openai/codex@0.169.0-linux-$chip
opencode-linux-$chip@1.18.33
@google/gemini-cli@0.61.0
@modelcontextprotocol/inspector@2.12.0
@modelcontextprotocol/conformance@0.2.0-alpha.11"
pypi_packages="
pydantic-ai-slim[mcp,openai]==2.66.0
openai-agents==0.24.0
fastmcp-slim[client]==4.2.0
mcp==2.3.0"

# Written last, so that a broken install is not taken for a whole one.
wanted="$npm_packages$pypi_packages"
if [ "$(cat "$target/installed" 2>/dev/null)" = "$wanted" ]; then
    exit 0
fi

mkdir -p "$target"
rm -f "$target/installed"
# shellcheck disable=SC2086 # the lists are lists
npm install --prefix "$target/npm" --ignore-scripts --no-audit --no-fund --loglevel=error $npm_packages &
npm_install=$!
"${PYTHON:-python3}" -m venv "$target/venv"
# shellcheck disable=SC2086
"$target/venv/bin/pip" install --quiet --disable-pip-version-check $pypi_packages
wait "$npm_install"
printf '%s' "$wanted" >"$target/installed"
