# The daily command: a model in, its folder under out/ filled. A change of the model, of an option or of a program does
# the work again; nothing else does. A step that ends with 1 (done, but something is missing) does not stop the next one;
# the worst code is what the run ends with.

OUT ?= out
BATCH ?=
SEQ ?=
DIM ?=
PRECISION ?=
empty :=
space := $(empty) $(empty)
profile_tag := $(if $(BATCH),b$(BATCH)) $(if $(SEQ),s$(SEQ)) $(subst =,,$(subst /,_,$(DIM))) $(PRECISION)
profile_folder := $(OUT)/$(basename $(notdir $(MODEL)))$(if $(strip $(profile_tag)),@$(subst $(space),_,$(strip $(profile_tag))))
profile_options := $(if $(BATCH),--batch $(BATCH)) $(if $(SEQ),--seq $(SEQ)) $(foreach d,$(DIM),--dim '$(d)') $(if $(PRECISION),--precision $(PRECISION))

.PHONY: profile
ifeq ($(MODEL),)
profile:
	@echo 'Which model? Say: make MODEL=models/transformer_block.onnx profile' >&2; exit 2
else
profile: $(PROGRAMS)
	$(Q)scripts/profile.sh $(PROGRAM) '$(MODEL)' '$(profile_folder)' $(profile_options)
endif
