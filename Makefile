# Every verb is one line; `make` alone lists them.
SHELL := /bin/bash
PY := .venv/bin/python
UV ?= .venv/bin/uv
COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest --generate-hashes --no-emit-index-url --custom-compile-command "make lock"
LINT = .venv/bin/ruff check && .venv/bin/ruff format --check && .venv/bin/mypy && .venv/bin/lint-imports --no-logo
.DEFAULT_GOAL := help
.PHONY: help setup demo test check unit functions image versions spark cli gateway sdk sdk-matrix cluster images cluster-down fixture bench lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

setup: ## .venv and whatever the machine lacks (apt-get as root); ends at once when nothing has changed
	@scripts/setup

demo: setup ## 336,776 real flights through 16 brokers and Spark, compared with pandas
	@$(PY) demo/run.py

test: setup ## everything: the linters, then all tests
	@$(LINT) && $(PY) -m pytest -n 2 --dist loadgroup tests

check: setup ## the quick part, under a minute: linters, types, import contracts, unit and contract tests
	@$(LINT) && $(PY) -m pytest -n 2 tests/unit tests/contract

unit: setup ## pure code
	@$(PY) -m pytest tests/unit

functions: setup ## the broker's Lua, against a real redis-server
	@$(PY) -m pytest tests/functions

image: setup ## start.sh: damaged folders, upgrades, and Redis 7, Redis 8 and Valkey 8
	@$(PY) -m pytest tests/image

versions: setup ## the broker's Lua, all of its tests, against each server in turn
	@set -e; for server in redis-7 redis-8 valkey-8; do echo "== $$server"; $(PY) -m pytest tests/functions --server $$server; done

spark: setup ## the Spark source, against real brokers
	@$(PY) -m pytest tests/spark

cli: setup ## the pq command and its embedded namespace
	@$(PY) -m pytest tests/cli

gateway: setup ## the gateway, against real brokers
	@$(PY) -m pytest tests/gateway

sdk: setup ## Microsoft's SDKs for Python, JavaScript, Go and Java, unmodified, against pq up
	@$(PY) -m pytest tests/sdk

sdk-matrix: setup ## the same, written to docs/reference/sdk-matrix.md
	@PQ_WRITE_SDK_MATRIX=yes $(PY) -m pytest tests/sdk

fixture: setup ## at a release: what a broker of this version leaves on disk, for the tests of later ones
	@PYTHONPATH=tests $(PY) -m harness.layout_making

cluster: ## a Kubernetes cluster to play with, KUBECONFIG's, kind's or one made here; in a shell: eval "$(make cluster)"
	@scripts/setup >&2 && PYTHONPATH=tests $(PY) -m harness.cluster up

images: setup ## broker, operator, gateway and Spark: their images, built and given to the nodes of `make cluster`
	@PYTHONPATH=tests $(PY) -m harness.cluster load broker operator gateway spark

cluster-down: ## remove what `make cluster` made
	@PYTHONPATH=tests $(PY) -m harness.cluster down

bench: setup ## every benchmark, one after the other
	@set -e; for question in benchmarks/*.py; do echo "== $$question"; $(PY) "$$question"; done

lock: ## choose the newest versions that fit and write them down with their hashes
	@$(COMPILE) --upgrade --all-extras --group dev -o requirements.lock pyproject.toml && $(COMPILE) --upgrade --group build -c requirements.lock -o requirements-build.lock
	@set -e; for image in operator gateway spark:spark-on-k8s; do $(COMPILE) -c requirements.lock --extra $${image%%:*} -o $${image##*:}/requirements.lock pyproject.toml; done

clean: ## everything that was made here
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist demo/out && find . -name __pycache__ -type d -prune -exec rm -rf {} +
