# Installing and cleaning. Who builds a plugin says -I$(PREFIX)/include/ceiling-scout.

PREFIX ?= /usr/local
.PHONY: install clean distclean
install: $(PROGRAMS)
	install -D -m 755 $(PROGRAM) $(DESTDIR)$(PREFIX)/bin/extract_ops
	install -D -m 755 $(SCOUT) $(DESTDIR)$(PREFIX)/bin/scout_batch
	$(Q)if [[ -e $(CUDA_DEVICE) ]]; then \
	  install -D -m 755 $(CUDA_DEVICE) $(DESTDIR)$(PREFIX)/lib/ceiling-scout/scout_cuda.so; fi
	install -D -m 644 scout/gemm.h $(DESTDIR)$(PREFIX)/include/ceiling-scout/scout/gemm.h
	install -D -m 644 scout/plugin.h $(DESTDIR)$(PREFIX)/include/ceiling-scout/scout/plugin.h

clean:
	$(Q)rm -rf bin out/build compile_commands.json
distclean: clean
	$(Q)rm -rf out
