# One kernel against another, or against the library: keep or revert. scripts/validate.sh reads the variables from its
# environment, as they were typed.

BEFORE ?=
AFTER ?=
SHAPE ?=
OP ?= gemm

.PHONY: validate
validate: export VALIDATE_BEFORE := $(BEFORE)
validate: export VALIDATE_AFTER := $(AFTER)
validate: export VALIDATE_SHAPE := $(SHAPE)
validate: export VALIDATE_OP := $(OP)
validate: export VALIDATE_PRECISION := $(PRECISION)
validate: export VALIDATE_DEVICE := $(DEVICE)
validate: export VALIDATE_REGIME := $(REGIME)
validate: export VALIDATE_BUDGET := $(BUDGET)
validate: $(PROGRAMS)
	$(Q)scripts/validate.sh $(SCOUT)
