# What a user types. How things are built is in mk/; nothing here knows a source file by name.
# `make help` prints the lines that begin with "##".

##@ Everyday
## make                         build bin/extract_ops, bin/scout_batch, bin/analyze, and bin/ceiling-scout in front of them (release, gcc)
## make MODEL=m.onnx profile    write out/<model>[@<options>]/ops.json, measure every operation into reports/ beside it, and
##                              say what is worth doing (summary.txt, report.html, …, dispatch.json and dispatch.h);
##                              also BATCH= SEQ= DIM="a=1 b=2" PRECISION= DEVICE= REGIME= BUDGET=seconds MEASURE=no OUT=
##                              PROFILE=top3 (counters of the three that take longest, by Nsight Compute)
##                              (a folder belongs to one model: another of the same name is refused and needs an OUT of its own)
## make zoo                     profile the models of ZOO=models/zoo.json, each at several sizes: only what has changed; also
##                              ONLY=name BUDGET=seconds OUT= AGAIN=yes (all of it anew) GPUS=all (beside each other on
##                              these, as in 0,1); make zoo-list lists them
## make nightly                 the same, all of it anew (AGAIN=no: what has changed), and prints a digest at the end;
##                              CLUSTER=slurm SBATCH="--gres=gpu:1": a task for each model and size; make zoo-clean
##                              KEEP=30 keeps the last nights of the history
## make dispatch                one table of all models in OUT for deployment, dispatch.json and dispatch.h there, and what runs
##                              otherwise than by the one before; SIGN=~/.ssh/id_ed25519 signs it, for deployments that
##                              demand it
## make validate BEFORE=cublas AFTER=./mine.so SHAPE=M,N,K   a kernel of your own beside the library's: keep, or revert;
##                              also OP= PRECISION= DEVICE= REGIME= BUDGET=seconds; AFTER may be the name of a candidate
## make check                   the quick half of the tests, for every change: a minute; TEST=stats runs that unit test alone
## make test                    build with every compiler, run every test, print the totals
## make bench-extract           speed and memory of extract_ops beside python onnx, on the same files
## make bench-repeat            how well CPU figures repeat, over fresh runs of six products
## make bench-busy              the same beside nothing, two, four and eight busy loops (a quarter of an hour)
## make bench-analyze           speed and memory of analyze on 100,000 reports
## make bench-page              whether a page of 5,000 operations opens and sorts within a second
## make bench-dispatch          a lookup in a dispatch table of 10,000 operations, beside a hash table and a list
## make bench-eta               whether the end that a bar tells comes when it says: ten runs (CPU, ten minutes)
## make bench-peers             models as a whole beside onnxruntime, in turns: MODELS=, BATCH=, SEQ=, BUDGET=, TURNS= (CPU)
## make bench-run               what a launch of libscout_run costs beside calling the plan that it launches; BLOCKS= of them (51)
## make install                 copy the programs, libscout_dispatch, libscout_run, manual pages, completions, a plugin's headers and the documents to
##                              $(DESTDIR)$(PREFIX) (PREFIX=/usr/local)
## make dist                    the same for other machines: out/dist/ceiling-scout, a tree that can be put anywhere (libraries inside,
##                              CUDA code for DIST_ARCHS="80 89 90 100": takes four times as long as one)
## make wheel                   the same as a Python package: out/wheel/ceiling_scout-….whl, for pip install
## make clean                   remove bin/ and the build folders; `make distclean` removes all of out/
##@ Development
## make debug | asan | tsan | fuzz
##                              build in that mode (asan: address and undefined-behaviour sanitizers; tsan: threads; fuzz: libFuzzer,
##                              clang)
## make unit                    build and run the unit tests of the mode
## make cli golden              the command line's tests; the stored ops.json of models/, the stored summaries of an H200's reports
## make page                    open report.html in Chromium and look at it (skipped where there is none)
## make rooms                   hold every #include against the table of rooms in docs/architecture.md
## make golden-update           store what extract_ops and analyze say today as what is expected
## make format | format-check   clang-format the sources, or say which ones differ
## make tidy                    clang-tidy, every warning an error
## make bench-cache             what a hit of the cache costs: HITS= of them (1000), beside reading the same bytes
## make bench-plan              time and memory of choosing a plan: OCCURRENCES= of them (10000) and as many groups
## make bench-history           the alarms over a simulated year: NIGHTS= (365) of OPERATIONS= (2000), rates counted
## make bench-compare           how often analyze compare errs: NIGHTS= simulated nights of each kind, counted (10000)
## make compile_commands.json   for editors and clang-tidy
## make cuda                    bin/scout_cuda.so, the CUDA device (`make` builds it too where the CUDA toolkit is)
## make info                    what is built how, and which CUDA toolkit was found
##@ Variables
## MODE=release|debug|asan|tsan|fuzz CC=gcc|clang BUILD=folder V=1 (show commands) STATIC=1 (link the libraries in)
## CUDA=no (leave the CUDA device out) KERNELS=quick (compile its kernels soon, to slow code, which is for tests)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

# What a user says, and what else the command line does.
TYPED := MODEL OUT BATCH SEQ DIM PRECISION DEVICE REGIME BUDGET MEASURE PROFILE BEFORE AFTER SHAPE OP ZOO ONLY AGAIN GPUS SIGN KEEP NIGHTS OPERATIONS HITS \
  PREFIX DESTDIR DIST MODE STATIC V TEST
GIVEN := $(foreach v,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $v))),$v))

# What these hold is text, such as a model's file name, and never make's own language: from here on each is what was
# typed, and nothing expands it again. Recipes find them in their environment, so that no shell reads them either.
# CC, CFLAGS, BUILD, CUDA_ARCHS and what else says how to build are make's language, as everywhere.
$(foreach v,$(TYPED),$(if $(filter undefined,$(origin $v)),,$(eval override $v := $$(value $v))))

# What a build compiles goes to all cores, unless -j says how many. Several goals keep their order.
BUILDS := all debug asan tsan fuzz cuda profile validate zoo zoo-list nightly zoo-clean dispatch
ifeq ($(filter -j% --jobserver%,$(MAKEFLAGS))$(filter-out $(BUILDS),$(or $(MAKECMDGOALS),all))$(word 2,$(MAKECMDGOALS)),)
MAKEFLAGS += -j$(shell nproc)
endif

# A variable of the command line that none of these files reads is a slip. Its name is shown to a shell where it has
# nothing but letters, digits and underscores.
NAMED := A B C D E F G H I J K L M N O P Q R S T U V W X Y Z a b c d e f g h i j k l m n o p q r s t u v w x y z \
  0 1 2 3 4 5 6 7 8 9 _
left = $(if $2,$(call left,$(subst $(firstword $2),,$1),$(wordlist 2,99,$2)),$1)
UNREAD := $(firstword $(foreach v,$(filter-out $(TYPED) CC CFLAGS CXX NVCC BUILD,$(GIVEN)),$\
  $(if $(call left,$v,$(NAMED)),,$(if $(shell grep -rq -e '[$$][[:punct:]]*$v\b' -e 'env.*\b$v\b' Makefile mk scripts tests 2>/dev/null && echo read),,$v))))
ifneq ($(UNREAD),)
MEANT := $(firstword $(foreach t,$(filter-out V,$(TYPED)),$(if $(findstring $t,$(UNREAD)),$t)))
$(error $(UNREAD) is no variable of this Makefile$(if $(MEANT),; did you mean $(MEANT)?,;) make help lists them)
endif
ifeq ($(MAKECMDGOALS)$(if $(filter MODEL,$(GIVEN)),,none),)
$(error MODEL is for a goal: say make MODEL=$(value MODEL) profile)
endif

include mk/modes.mk
include mk/build.mk
include mk/profile.mk
include mk/validate.mk
include mk/dispatch.mk
include mk/runtime.mk
include mk/checks.mk
include mk/install.mk
include mk/python.mk
include mk/manual.mk
include mk/cuda.mk
include mk/scripted.mk

.PHONY: all help info debug asan tsan fuzz
all: $(PROGRAMS)

debug asan tsan fuzz:
	$(Q)$(MAKE) --no-print-directory MODE=$@ $(if $(filter fuzz,$@),CC=clang) modal

help:
	@sed -n -e 's/^##@ \(.*\)/\n\1/p' -e 's/^## /  /p' Makefile

info:
	@echo "mode $(MODE), $(shell $(CC) --version | head -n 1)"
	@echo "build folder $(BUILD), program $(PROGRAM)"
	@echo "CUDA toolkit: $(CUDA_SAYS)"
