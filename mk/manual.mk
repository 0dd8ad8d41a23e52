# Manual pages and completions: what the programs say of themselves, so they are made when these are built.

MAN_PAGES := $(PROGRAM_NAMES:%=$(BUILD)/share/man/man1/%.1)
WORDS_bash := bash-completion/completions
WORDS_zsh := zsh/site-functions
WORDS_fish := fish/vendor_completions.d
COMPLETIONS := $(foreach n,$(PROGRAM_NAMES),$(WORDS_bash)/$n $(WORDS_zsh)/_$n $(WORDS_fish)/$n.fish)
COMPLETIONS := $(COMPLETIONS:%=$(BUILD)/share/%)

# The command in front asks the others what they take.
$(foreach f,$(MAN_PAGES) $(COMPLETIONS),$(if $(findstring ceiling-scout,$f),$f)): $(BUILT)

.PHONY: manual install-manual
manual: $(MAN_PAGES) $(COMPLETIONS)
$(BUILD)/share/man/man1/%.1: $(BUILD)/bin/% scripts/make_man.sh scripts/make_man.awk
	$(say) MAN $@
	$(Q)mkdir -p $(@D)
	$(Q)scripts/make_man.sh $< > $@.new && mv $@.new $@
$(BUILD)/share/$(WORDS_bash)/%: $(BUILD)/bin/% scripts/make_completion.sh scripts/completion.bash
	$(call complete_for,bash)
$(BUILD)/share/$(WORDS_zsh)/_%: $(BUILD)/bin/% scripts/make_completion.sh
	$(call complete_for,zsh)
$(BUILD)/share/$(WORDS_fish)/%.fish: $(BUILD)/bin/% scripts/make_completion.sh
	$(call complete_for,fish)
define complete_for
$(say) WORDS $@
$(Q)mkdir -p $(@D)
$(Q)scripts/make_completion.sh $1 $< > $@.new && mv $@.new $@
endef

install: install-manual
install-manual: manual
	$(Q)for file in $(MAN_PAGES) $(COMPLETIONS); do install -D -m 644 -- "$$file" "$$INSTALL_ROOT/$${file#$(BUILD)/}"; done
