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
profile: $(PROGRAMS)
	$(Q)scripts/profile.sh $(PROGRAM)
endif
