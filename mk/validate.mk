# One kernel against another, or against the library: keep or revert. scripts/validate.sh reads the variables from its
# environment, as they were typed.

BEFORE ?=
AFTER ?=
SHAPE ?=
OP ?= gemm

.PHONY: validate
validate: export VALIDATE_BEFORE := $(value BEFORE)
validate: export VALIDATE_AFTER := $(value AFTER)
validate: export VALIDATE_SHAPE := $(value SHAPE)
validate: export VALIDATE_OP := $(value OP)
validate: export VALIDATE_PRECISION := $(value PRECISION)
validate: export VALIDATE_DEVICE := $(value DEVICE)
validate: export VALIDATE_REGIME := $(value REGIME)
validate: export VALIDATE_BUDGET := $(value BUDGET)
validate: $(PROGRAMS)
	$(Q)scripts/validate.sh $(SCOUT)
