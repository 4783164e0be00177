# `make demo` and `make test` work on a fresh machine: they create .venv and find (or install) Java first.
# Once everything is there, both checks together take a few milliseconds.

SHELL := /bin/bash
PY := .venv/bin/python
# Spark needs Java 17 or later; the script prints the JAVA_HOME to use, or says how to get one.
WITH_JAVA = java_home="$$(scripts/ensure_java.sh)" && export JAVA_HOME="$$java_home" PATH="$$java_home/bin:$$PATH" &&

.DEFAULT_GOAL := help
.PHONY: help demo test lint fmt types unit bench docs clean distclean env env-dev

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: env ## Run examples/01-first-look: a pipeline, its picture, results, dead letters, and what to try next.
	@$(WITH_JAVA) $(PY) examples/01-first-look/run.py

# mypy works in one process, and a quarter of a minute if it remembers nothing: beside the tests, not before them. What it
# says comes as soon as it is known, and what it finds once more at the end.
test: lint ## Everything a change must pass: ruff, mypy, pytest.
	@said="$$(mktemp)"; { $(PY) -m mypy >"$$said" 2>&1; code=$$?; cat "$$said"; exit $$code; } & types=$$!; \
	$(MAKE) --no-print-directory unit; unit=$$?; \
	wait $$types; types=$$?; if [ $$types != 0 ]; then echo; cat "$$said"; fi; rm -f "$$said"; exit $$((unit || types))

lint: env-dev ## Check style and formatting.
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check --quiet . || { $(PY) -m ruff format --check .; echo "run 'make fmt'"; exit 1; }

types: env-dev ## Check types.
	@$(PY) -m mypy

unit: env-dev ## Run the tests in two processes; choose some with ARGS="-k name".
	@scripts/ensure_chromium.sh
	@{ scripts/ensure_postgres.sh; scripts/ensure_kafka.sh; } >/dev/null 2>&1 & # fetched while the first tests run
	@# Commands of the tests start in half the time with it. Made once; without it they only take longer.
	@$(WITH_JAVA) $(PY) -m tests.support.archived || echo "no archive of the classes of Spark: tests go without"
	@# Containers often forbid Python to keep what it compiled: two dozen processes would compile everything anew.
	@unset PYTHONDONTWRITEBYTECODE; $(WITH_JAVA) $(PY) -m pytest -n 2 --dist worksteal $(ARGS)

fmt: env-dev ## Format the code and apply the safe fixes.
	@$(PY) -m ruff check --fix --quiet . || true
	@$(PY) -m ruff format .

bench: env-dev ## Run the benchmarks, side by side with plain PySpark.
	@shopt -s nullglob; files=(benchmarks/bench_*.py); \
	if [ $${#files[@]} -eq 0 ]; then echo "no benchmarks yet"; exit 0; fi; \
	$(WITH_JAVA) for file in "$${files[@]}"; do echo "== $$file"; $(PY) "$$file" $(ARGS) || exit 1; done

docs: env-dev ## Regenerate the generated documentation.
	@$(PY) scripts/generate_docs.py

clean: ## Remove caches and build products, keep the environment.
	@rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis spark-warehouse metastore_db derby.log
	@find src tests examples benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean ## Remove the environment as well.
	@rm -rf .venv

env:
	@scripts/bootstrap.sh

env-dev:
	@scripts/bootstrap.sh dev
