# What a newcomer needs: `make run` and `make test`. `.ci/run` runs `make test-all` and `make check`.
PYTHON ?= python3
BIN := .venv/bin
# Many tests wait for processes, so more workers than cores pay. The order is that of tests/conftest.py.
# One after the other: PARALLEL=
PARALLEL ?= --numprocesses 4 --dist loadgroup --no-loadscope-reorder
# Every worker and every process that a test starts reads the same code: compiled once, it starts sooner.
unexport PYTHONDONTWRITEBYTECODE
SOURCES := manage.py toolsearch_site catalog sessions tests bench

.PHONY: run setup test test-all test-whoosh3 coverage check audit lock check-lock vendor format screenshots clean

run: .venv/run.stamp
	@exec $(BIN)/python manage.py up

setup: .venv/full.stamp

# The quick lane: minutes.
test: .venv/full.stamp
	$(BIN)/pytest $(PARALLEL) -m 'not slow and not clients' $(PYTEST_ARGS)

# Both lanes in one run, so that the long waits of some tests are filled with the others.
test-all: .venv/full.stamp
	$(BIN)/pytest $(PARALLEL) $(PYTEST_ARGS)

coverage: .venv/full.stamp
	$(BIN)/pytest $(PARALLEL) --cov --cov-report=term $(PYTEST_ARGS)

# What takes the place of whoosh-reloaded should a Python release break that: the index must work with it too.
WHOOSH3 ?= .venv/whoosh3
test-whoosh3: export PYTHONPATH = $(abspath $(WHOOSH3))
test-whoosh3: .venv/full.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $(WHOOSH3) whoosh3==3.54.0
	$(BIN)/python -c 'import whoosh; assert whoosh.__version__[0] == 3, whoosh.__file__'
	$(BIN)/pytest $(addprefix tests/catalog/search/,test_index.py test_engine.py test_crashes.py)

check: .venv/full.stamp
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy $(SOURCES)
	$(BIN)/lint-imports
	$(BIN)/python manage.py makemigrations --check --dry-run

# Known vulnerabilities of what is installed. Needs https://api.osv.dev; an environment of its own keeps its parts out of ours.
audit: .venv/full.stamp
	$(BIN)/python -m venv .venv/audit
	.venv/audit/bin/pip install --quiet --disable-pip-version-check 'pip-audit>=2.9,<3'
	.venv/audit/bin/pip-audit --vulnerability-service osv --skip-editable --progress-spinner off \
	  --path "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"

# What an image installs, by version and hash: after every change of the dependencies.
LOCKED := deploy/requirements.txt
lock: .venv/bin/python
	$(BIN)/python -m venv .venv/lock
	.venv/lock/bin/pip install --quiet --disable-pip-version-check 'uv>=0.9,<1'
	echo 'setuptools>=77' | .venv/lock/bin/uv pip compile --quiet --upgrade --universal --generate-hashes --no-emit-index-url \
	  --custom-compile-command 'make lock' --extra meaning --output-file $(LOCKED) pyproject.toml -

# Whether each of them can be had and is what it was when the file was written.
check-lock: .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --dry-run --ignore-installed --no-deps \
	  --require-hashes --requirement $(LOCKED)

# What pages load that others made, built anew from its lock: after a change of package.json, and when a page uses
# a class of Tabler or an icon for the first time. Needs Node.js 20 and npm; nothing that runs needs either.
VENDOR_BUILD := build/vendor
vendor:
	rm -rf $(VENDOR_BUILD) && mkdir -p $(VENDOR_BUILD)
	cp static/vendor/package.json static/vendor/package-lock.json static/vendor/.npmrc static/vendor/build.mjs $(VENDOR_BUILD)
	cd $(VENDOR_BUILD) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && npm run --silent build -- $(CURDIR)
	rm -rf $(VENDOR_BUILD)

format: .venv/full.stamp
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

screenshots: .venv/full.stamp
	$(BIN)/python -m tests.harness.screenshots docs/images

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .coverage

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("toolsearch needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv || { rm -rf .venv; echo "on Debian: apt-get install python3-venv"; exit 1; }

.venv/run.stamp: pyproject.toml | .venv/bin/python
	@echo "Installing into .venv; the first time takes a minute or two."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[meaning]'
	@touch $@

.venv/full.stamp: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[meaning,test,bench]'
	@touch $@ .venv/run.stamp
