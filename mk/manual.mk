# Manual pages and completions for bash: what the programs say of themselves, so they are made when these are built.

MAN_PAGES := $(PROGRAM_NAMES:%=$(BUILD)/share/man/man1/%.1)
COMPLETIONS := $(PROGRAM_NAMES:%=$(BUILD)/share/bash-completion/completions/%)

# The command in front asks the others what they take.
$(filter %ceiling-scout.1 %/ceiling-scout %/_ceiling-scout %ceiling-scout.fish,$(MAN_PAGES) $(COMPLETIONS)): $(BUILT)

.PHONY: manual install-manual
manual: $(MAN_PAGES) $(COMPLETIONS)
$(BUILD)/share/man/man1/%.1: $(BUILD)/bin/% scripts/make_man.sh scripts/make_man.awk
	$(say) MAN $@
	$(Q)mkdir -p $(@D)
	$(Q)scripts/make_man.sh $< > $@.new && mv $@.new $@
$(BUILD)/share/bash-completion/completions/%: $(BUILD)/bin/% scripts/make_completion.sh scripts/completion.bash
	$(say) WORDS $@
	$(Q)mkdir -p $(@D)
	$(Q)scripts/make_completion.sh $< > $@.new && mv $@.new $@

install: install-manual
install-manual: manual
	install -d -- "$$INSTALL_ROOT/share/man/man1" "$$INSTALL_ROOT/share/bash-completion/completions"
	install -m 644 -- $(MAN_PAGES) "$$INSTALL_ROOT/share/man/man1/"
	install -m 644 -- $(COMPLETIONS) "$$INSTALL_ROOT/share/bash-completion/completions/"
