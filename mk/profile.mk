# The daily command: a model in, its folder under out/ filled. A change of the model, of an option or of a program does
# the work again; nothing else does. scripts/profile.sh names the folder and the options. It reads them from its
# environment, as they were typed: a name may hold blanks, quotes and whatever else a shell would take for its own.

OUT ?= out
BATCH ?=
SEQ ?=
DIM ?=
PRECISION ?=
DEVICE ?=
REGIME ?=
BUDGET ?=
MEASURE ?= yes

.PHONY: profile
ifeq ($(MODEL),)
profile:
	@echo 'Which model? Say: make MODEL=models/transformer_block.onnx profile' >&2; exit 2
else
profile: export PROFILE_MODEL := $(MODEL)
profile: export PROFILE_OUT := $(OUT)
profile: export PROFILE_BATCH := $(BATCH)
profile: export PROFILE_SEQ := $(SEQ)
profile: export PROFILE_DIM := $(DIM)
profile: export PROFILE_PRECISION := $(PRECISION)
profile: export PROFILE_SCOUT := $(if $(filter no,$(MEASURE)),,$(SCOUT))
profile: export PROFILE_ANALYZE := $(ANALYZE)
profile: export PROFILE_DEVICE := $(DEVICE)
profile: export PROFILE_REGIME := $(REGIME)
profile: export PROFILE_BUDGET := $(BUDGET)
profile: export PROFILE_COUNTERS := $(if $(filter PROFILE,$(GIVEN)),$(patsubst top%,%,$(PROFILE)))
profile: $(PROGRAMS)
	$(Q)scripts/profile.sh $(PROGRAM)
endif

# Many models, each at several sizes, by the same script: ceiling-scout zoo. A night measures all of it again (AGAIN=no:
# what has changed), and prints its digest at the end.
ZOO ?= models/zoo.json
ONLY ?=
AGAIN ?=
GPUS ?=
.PHONY: zoo zoo-list nightly zoo-clean
zoo zoo-list nightly: export ZOO_ZOO := $(ZOO)
zoo zoo-list nightly: export ZOO_ONLY := $(ONLY)
zoo zoo-list nightly: export ZOO_BUDGET := $(BUDGET)
# Other tools export variables of these names.
zoo zoo-list nightly: export ZOO_GPUS := $(if $(filter GPUS,$(GIVEN)),$(GPUS))
zoo zoo-list nightly: export ZOO_OUT := $(OUT)
zoo zoo-list: export ZOO_AGAIN := $(filter yes,$(AGAIN))
nightly: export ZOO_AGAIN := $(if $(filter no,$(AGAIN)),,yes)
zoo-list: ZOO_HOW := --list
nightly: ZOO_HOW := --digest
ZOO_RUN = $(FRONT) zoo $(ZOO_HOW) $${ZOO_ONLY:+"--only=$$ZOO_ONLY"} $${ZOO_BUDGET:+"--budget=$$ZOO_BUDGET"} $${ZOO_AGAIN:+--again} $${ZOO_GPUS:+"--gpus=$$ZOO_GPUS"} "--out=$$ZOO_OUT" -- "$$ZOO_ZOO"
# CLUSTER=slurm: a task for each, with these options of sbatch. Clusters export variables of this name as well.
SBATCH ?=
ifeq ($(origin CLUSTER),command line)
ifeq ($(CLUSTER),slurm)
nightly: ZOO_RUN = PATH="$$(dirname "$$(realpath $(FRONT))"):$$PATH" scripts/slurm/submit.sh "$$ZOO_ZOO" "$$ZOO_OUT" $(SBATCH)
nightly: $(if $(ONLY)$(BUDGET)$(if $(filter GPUS,$(GIVEN)),$(GPUS))$(filter no,$(AGAIN)),no_part_of_a_night)
else ifneq ($(CLUSTER),)
nightly: unknown_cluster
endif
endif
.PHONY: no_part_of_a_night unknown_cluster
no_part_of_a_night:
	@echo 'ONLY, BUDGET, GPUS and AGAIN=no are not for CLUSTER=slurm, which measures all of the list anew, a task on each GPU: give it a list of your own (ZOO=)' >&2; exit 2
unknown_cluster:
	@echo 'CLUSTER is slurm, or nothing for this machine alone' >&2; exit 2
zoo zoo-list nightly: $(PROGRAMS)
	$(Q)$(ZOO_RUN)

# One table of all models, and what runs otherwise than by the one before.
.PHONY: dispatch
dispatch: export ZOO_OUT := $(OUT)
dispatch: export ZOO_SIGN := $(if $(filter SIGN,$(GIVEN)),$(SIGN))
dispatch: $(PROGRAMS)
	$(Q)table="$$ZOO_OUT/dispatch.json"; set --; \
	for folder in "$$ZOO_OUT"/*/; do if [ -e "$$folder/dispatch.json" ]; then set -- "$$@" "$$folder"; fi; done; \
	if [ $$# = 0 ]; then echo "no model in $$ZOO_OUT has a dispatch table; say make zoo, or make MODEL=m.onnx profile" >&2; exit 3; fi; \
	if [ -e "$$table" ]; then set -- "$$@" "--since=$$table"; fi; \
	if [ -n "$$ZOO_SIGN" ]; then set -- "$$@" "--sign=$$ZOO_SIGN"; fi; \
	$(ANALYZE) dispatch "--output=$$table" "--header=$$ZOO_OUT/dispatch.h" "$$@"

# The nights that are kept, and nothing of those before them.
KEEP ?= 30
zoo-clean: export ZOO_OUT := $(OUT)
zoo-clean: export ZOO_KEEP := $(KEEP)
zoo-clean: $(PROGRAMS)
	$(Q)$(ANALYZE) history "$$ZOO_OUT/zoo/history.db" "--keep=$$ZOO_KEEP"
