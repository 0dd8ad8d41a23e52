# Installing and cleaning. A plugin is built with -I$(PREFIX)/include/ceiling-scout.

PREFIX ?= /usr/local
# What a plugin may include: the ABI, and how operations of each kind are read.
PLUGIN_HEADERS := scout/plugin.h $(sort $(wildcard scout/op/*.h))
.PHONY: install clean distclean
install install-manual install-dispatch install-runtime install-python: export INSTALL_ROOT := $(DESTDIR)$(PREFIX)
install: $(PROGRAMS)
	install -D -m 755 -- $(PROGRAM) "$$INSTALL_ROOT/bin/extract_ops"
	install -D -m 755 -- $(SCOUT) "$$INSTALL_ROOT/bin/scout_batch"
	install -D -m 755 -- $(ANALYZE) "$$INSTALL_ROOT/bin/analyze"
	install -D -m 755 -- $(FRONT) "$$INSTALL_ROOT/bin/ceiling-scout"
	install -D -m 755 -t "$$INSTALL_ROOT/lib/ceiling-scout" -- $(FRONT_SCRIPTS)
	$(Q)if [[ -e $(BIN)/scout_cuda.so ]]; then \
	  install -D -m 755 -- $(BIN)/scout_cuda.so "$$INSTALL_ROOT/lib/ceiling-scout/scout_cuda.so"; fi
	install -d -- "$$INSTALL_ROOT/include/ceiling-scout/scout/op"
	$(Q)for header in $(PLUGIN_HEADERS); do install -m 644 -- "$$header" "$$INSTALL_ROOT/include/ceiling-scout/$$header"; done
	$(Q)find LICENSE README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs -type f ! -path '*/build/*' -exec \
	  install -D -m 644 -- {} "$$INSTALL_ROOT/share/doc/ceiling-scout/{}" ';'

clean:
	$(Q)rm -rf bin out/build compile_commands.json
distclean: clean
	$(Q)rm -rf out
