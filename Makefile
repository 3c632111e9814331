# make run    sets everything up, runs the pipeline, prints the front and where the report is
# make test   sets everything up, runs the quick tests
#
# make test CHANGED=1                    and the slow ones nearest to what changed, a minute of them (tests/sessions/tiers.py)
# make test-all                          the whole suite but the sweeps
# make test-full PART=tests/acceptance   long sweeps too, hours; what has passed is left out by the next call
# make test-cluster                      runs through a Slurm of Debian that the tests start on this machine, half an hour
#
# make run MODEL=mobilenet_digits DEVICE=host OVERRIDES='finetune.epochs=1,seed=2' KEEP=pretrain
# make run RECIPE=default               2.5 times the training of the demonstration; RECIPE=thorough five times
# make run MODEL=resnet_digits,mobilenet_digits DEVICE=host,android   every network for every device, and a comparison

MODEL ?= trained_digits
DEVICE ?= host
OVERRIDES ?=
RECIPE ?=
KEEP ?=
PYTHON ?= python3
JOBS ?= all

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CONFIG := --config 'model=$(MODEL)' 'device=$(DEVICE)' 'overrides=[$(OVERRIDES)]' $(if $(RECIPE),'recipe=$(RECIPE)') $(if $(KEEP),'keep=[$(KEEP)]')
LAUNCH := PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python workflow/launch.py --cores $(JOBS)
COMMA := ,
OUTS := $(foreach model,$(subst $(COMMA), ,$(MODEL)),$(foreach device,$(subst $(COMMA), ,$(DEVICE)),results/$(model)/$(device)))
OUT := $(if $(filter 1,$(words $(OUTS))),$(OUTS),results)
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

# Processes of a workflow import the same packages again and again. All of them are compiled once, by setup, but for the
# packages' own tests, a quarter of all code: where Python is told to keep no compiled modules, each process would
# otherwise compile all it imports (PyTorch: 3 s, not 1). `make setup COMPILE=` leaves each package to its first import.
COMPILE ?= yes
unexport PYTHONDONTWRITEBYTECODE
# Threads of NumPy's matrices spin while they wait for each other, which slows down whatever runs beside them.
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: run setup test test-all test-full test-cluster test-tracking gpu-check lint types style format docs ui report compare lock clean runner serve

run: setup
	@$(LAUNCH) --quiet rules $(CONFIG)
	@$(BIN)/python workflow/finish.py $(MODEL) $(DEVICE)

setup: $(READY)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "autotailor needs Python 3.11 or newer; call make with PYTHON=/path/to/it")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements.lock
	@test -z "$(COMPILE)" || $(BIN)/python -m compileall -qq -j 0 -x '/(tests?|testing)/' $(VENV)/lib || true  # files that are no modules fail
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps -e .
	@touch $@

PYTEST := PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest
SUITE := -n 2 --dist loadfile --no-loadscope-reorder --durations=20

# The quick tests; tests/slow.txt lists what is left out. CHANGED=COMMIT compares with a commit; 1 is the landed state.
CHANGED ?=
test: setup
	$(PYTEST) $(SUITE) --quick $(if $(CHANGED),--changed=$(CHANGED))

# Where it passes without local changes, it notes the commit for `make test CHANGED=1`.
test-all: setup
	$(PYTEST) $(SUITE)
	@test -n "$$(git status --porcelain 2>&1)" || git rev-parse HEAD > tests/passed.txt

# Killed or interrupted, it goes on behind what passed; changed code begins anew (tests/sessions/resume.py).
PART ?=
test-full: setup
	$(PYTEST) $(SUITE) -m "" --resume $(PART)

# Debian's Slurm. Its services are not used: the tests start servers of their own, and stop them (tests/cluster/servers.py).
SLURM := slurmctld slurmd slurm-client munge
SUDO := $(if $(filter-out 0,$(shell id -u)),sudo)
test-cluster: setup
	@dpkg -s $(SLURM) >/dev/null 2>&1 || { $(SUDO) apt-get update -qq && \
		$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(SLURM) >/dev/null; }
	$(PYTEST) -m cluster $(or $(PART),tests/cluster)

# MLflow as people use it: pipelines on an MLflow server with PostgreSQL as its store, and MLflow's pages in Chromium. Missing
# Debian packages are installed. The screenshots lie in build/mlflow-pages.
test-tracking: setup
	@{ ls /usr/lib/postgresql/*/bin/initdb && command -v chromium; } > /dev/null 2>&1 \
		|| { $(SUDO) apt-get update -qq && \
		$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql chromium >/dev/null; }
	AUTOTAILOR_SCREENSHOTS="$(CURDIR)/build/mlflow-pages" $(PYTEST) -m server tests/tracking

# Each part of training and evaluation on this machine's GPU, and the tests that need one, in eight minutes (docs/guides/gpu.md).
ACCELERATOR ?= cuda
gpu-check: setup
	@mkdir -p build
	$(BIN)/python -m autotailor doctor --accelerator $(ACCELERATOR) --output build/gpu-check.json

# Types take half of its time: `make -j 2 lint` checks them beside the rest.
lint: types style

types: setup
	$(BIN)/mypy src

style: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/snakefmt --check Snakefile workflow
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/snakemake --lint
	$(MKDOCS) --strict --quiet

# The documentation as a site: build/site/index.html. Generated pages (docs/reference) are written first, to be committed.
docs: setup
	$(BIN)/python docs/tools/generate.py
	$(MKDOCS) --strict

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile workflow

ui: setup
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m autotailor.tracking.ui mlflow.db

report: run
	@$(LAUNCH) --quiet all $(CONFIG) --report $(OUT)/snakemake.html
	@echo "Snakemake's report: $(OUT)/snakemake.html"

compare: run
	@$(LAUNCH) --quiet rules $(CONFIG) -- $(addsuffix /compare.csv,$(OUTS))
	@$(LAUNCH) --quiet rules $(CONFIG)
	@$(BIN)/python workflow/finish.py $(MODEL) $(DEVICE)

# The operator runner for devices: build/runner/{host,aarch64}/autotailor-runner (src/runner/build.py).
TARGETS ?= host aarch64
runner:
	@$(PYTHON) src/runner/build.py $(TARGETS)

# What serves pools on devices: autotailor-serve, libautotailor.so and autotailor.h beside the runner (src/runner/serve/make.py).
serve:
	@$(PYTHON) src/runner/serve/make.py $(TARGETS)

lock: setup
	$(BIN)/uv pip compile --quiet --universal --extra dev --extra benchmarks --extra huggingface --extra postgresql --extra slurm --extra webdataset --python-version 3.11 --no-emit-index-url --output-file requirements.lock pyproject.toml

# Removes results, logs and caches; keeps the environment and the MLflow store.
clean:
	rm -rf results logs .snakemake .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
