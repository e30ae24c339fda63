#!/bin/sh
# Installs the MCP servers that the tests marked `servers` run, and an authorization server, into var/test-servers. Does
# nothing when they are there.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
target="$root/var/test-servers"
npm_packages="
@modelcontextprotocol/server-everything@2026.8.31
@modelcontextprotocol/server-filesystem@2026.8.31
@modelcontextprotocol/server-memory@2026.8.31
oidc-provider@9.13.3"
pypi_packages="
mcp-server-time==2026.10.19
mcp-server-git==2026.10.19
mcp-server-fetch==2026.10.24"

# Written last, so that a broken install is not taken for a whole one.
wanted="$npm_packages$pypi_packages"
if [ "$(cat "$target/installed" 2>/dev/null)" = "$wanted" ]; then
    exit 0
fi

mkdir -p "$target"
rm -f "$target/installed"
# shellcheck disable=SC2086 # the lists are lists
npm install --prefix "$target/npm" --no-audit --no-fund --loglevel=error $npm_packages
"${PYTHON:-python3}" -m venv "$target/venv"
# shellcheck disable=SC2086
"$target/venv/bin/pip" install --quiet --disable-pip-version-check $pypi_packages
printf '%s' "$wanted" >"$target/installed"
