# For GNU make 3.81 (macOS) or newer and Python 3.11 or newer. All that is installed goes into .venv/.
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test torture evidence bench browser examples check dist clean
PY := .venv/bin/python -P
unexport PYTHONPATH PYTHONHOME

help:
	@echo 'make demo      the main job in ten seconds'
	@echo 'make test      the test suite'
	@echo 'make torture   the long form of the proofs'
	@echo 'make evidence  what APScheduler does, measured beside duly'
	@echo 'make bench     the goals of speed and scale, measured (PEERS=folder: beside others, too)'
	@echo 'make browser   the report in a real Chromium'
	@echo 'make examples  the documents that need FastAPI and Celery'
	@echo 'make check     ruff, mypy and pyright'
	@echo 'make dist      wheel and source archive in dist/'
	@echo 'make clean     remove what the others made'
	@echo 'PYTHON=… interpreter for .venv      ARGS=… passed on to demo, test, torture, evidence, bench, browser and examples'
demo:    ; @sh .ci/venv cli && $(PY) -m duly demo $(ARGS)
test:    ; @sh .ci/venv dev && $(PY) -m pytest -n auto --dist worksteal $(ARGS)
torture: ; @sh .ci/venv dev && $(PY) -m pytest -n auto --dist worksteal -m torture $(ARGS)
evidence:; @sh .ci/venv dev,evidence && $(PY) -m pytest -m evidence tests/evidence $(ARGS)
# Without -P: the measurements are modules of the checkout.
bench:   ; @sh .ci/venv dev,bench && .venv/bin/python -m tests.bench.run $(if $(PEERS),--peers $(PEERS)) $(ARGS)
browser: ; @sh .ci/browser && sh .ci/venv dev,browser && $(PY) -m pytest -m browser tests $(ARGS)
examples:; @sh .ci/venv dev,examples && $(PY) -m pytest -m examples tests/test_docs.py $(ARGS)
check:
	@sh .ci/venv dev
	@sh .ci/typed
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) -m pyright
dist:
	@sh .ci/venv dev
	@rm -rf build dist *.egg-info
	$(PY) -m build
clean:   ; @rm -rf .venv .venv-* .venv.lock build dist *.egg-info
