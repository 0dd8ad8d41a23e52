# Installing and cleaning.

PREFIX ?= /usr/local
.PHONY: install clean distclean
install: $(PROGRAMS)
	install -D -m 755 $(PROGRAM) $(DESTDIR)$(PREFIX)/bin/extract_ops

clean:
	$(Q)rm -rf bin out/build compile_commands.json
distclean: clean
	$(Q)rm -rf out
