# Installing and cleaning. Who builds a plugin says -I$(PREFIX)/include/ceiling-scout.

PREFIX ?= /usr/local
# What a plugin may include: the ABI, and how operations of each kind are read.
PLUGIN_HEADERS := $(addprefix scout/,plugin.h op.h activation.h attention.h conv.h elementwise.h elementwise_chain.h embedding.h gemm.h move.h \
  norm.h pool.h quantize.h reduce.h recurrent.h rotary.h softmax.h window.h)
.PHONY: install clean distclean
install: $(PROGRAMS)
	install -D -m 755 $(PROGRAM) '$(DESTDIR)$(PREFIX)/bin/extract_ops'
	install -D -m 755 $(SCOUT) '$(DESTDIR)$(PREFIX)/bin/scout_batch'
	install -D -m 755 $(ANALYZE) '$(DESTDIR)$(PREFIX)/bin/analyze'
	$(Q)if [[ -e $(CUDA_DEVICE) ]]; then \
	  install -D -m 755 $(CUDA_DEVICE) '$(DESTDIR)$(PREFIX)/lib/ceiling-scout/scout_cuda.so'; fi
	install -d '$(DESTDIR)$(PREFIX)/include/ceiling-scout/scout'
	install -m 644 $(PLUGIN_HEADERS) '$(DESTDIR)$(PREFIX)/include/ceiling-scout/scout/'
	$(Q)find README.md docs -type f ! -path '*/build/*' -exec \
	  install -D -m 644 {} '$(DESTDIR)$(PREFIX)/share/doc/ceiling-scout/{}' ';'

clean:
	$(Q)rm -rf bin out/build compile_commands.json
distclean: clean
	$(Q)rm -rf out
