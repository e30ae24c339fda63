# What a newcomer needs: `make run` and `make test`. CI runs `make test` and `make check`.
PYTHON ?= python3
BIN := .venv/bin
SOURCES := manage.py toolsearch_site catalog sessions tests bench

.PHONY: run setup test coverage check format screenshots clean

run: .venv/run.stamp
	@exec $(BIN)/python manage.py up

setup: .venv/full.stamp

test: .venv/full.stamp
	$(BIN)/pytest $(PYTEST_ARGS)

coverage: .venv/full.stamp
	$(BIN)/pytest --cov --cov-report=term $(PYTEST_ARGS)

check: .venv/full.stamp
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy $(SOURCES)
	$(BIN)/lint-imports
	$(BIN)/python manage.py makemigrations --check --dry-run

format: .venv/full.stamp
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

screenshots: .venv/full.stamp
	$(BIN)/python -m tests.screenshots docs/images

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .coverage

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("toolsearch needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv || { rm -rf .venv; echo "on Debian: apt-get install python3-venv"; exit 1; }

.venv/run.stamp: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[meaning]'
	@touch $@

.venv/full.stamp: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[meaning,test,bench]'
	@touch $@ .venv/run.stamp
