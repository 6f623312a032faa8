# `make demo` and `make test` each do all of their own set-up, in `.venv` beside this file.
# PYTHON names the interpreter that `.venv` is made from; JOBS the number of tests at once.
BIN := .venv/bin
JOBS ?= 2
PATHS := $(wildcard src tests benchmarks examples)

.PHONY: help demo test check lock clean setup

help:
	@echo 'make demo    one task becomes one branch, on this machine, in under a minute'
	@echo 'make test    the checks, then every test'
	@echo 'make check   lint, format, types and import floors only'
	@echo 'make lock    compile the pinned requirements again'
	@echo 'make clean   remove what the other targets made'

demo:
	@sh scripts/setup run
	@$(BIN)/foundry-implementation-actor demo

# The tests run even when the checks do not pass, so that one run shows everything; both must pass.
test: setup
	@sh scripts/setup-claude
	@sh scripts/setup-php
	@sh scripts/setup-images
	@sh scripts/setup-peers
	@$(MAKE) --no-print-directory check; checks=$$?; \
	[ $$checks = 0 ] || echo 'make test: the checks above did not pass; the tests run all the same'; \
	$(BIN)/pytest -n $(JOBS) && exit $$checks

check: setup
	@$(BIN)/ruff check $(PATHS)
	@$(BIN)/ruff format --check $(PATHS)
	@$(BIN)/mypy $(PATHS)
	@$(BIN)/lint-imports

setup:
	@sh scripts/setup dev

lock:
	@sh scripts/lock

clean:
	rm -rf .venv tools/node_modules dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +
