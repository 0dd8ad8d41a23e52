# The plugins of the tests: a scripted device with a virtual clock, and candidates for it that fail on purpose. Never
# sanitized: a sanitizer would end a process before the supervisor could.
SCRIPTED := $(BUILD)/scripted
SCRIPTED_PLUGINS := $(addprefix $(SCRIPTED)/,device.so faults.so custom.so)
SCRIPTED_CFLAGS := $(filter-out -fsanitize%,$(LANGUAGE)) -O2 -g $(WARNINGS) -fPIC -shared -Wl,-z,defs

.PHONY: scripted scout-test
scripted: $(SCRIPTED_PLUGINS)
$(SCRIPTED)/device.so: tests/scripted/device.c tests/scripted/filling.c tests/scripted/products.c
$(SCRIPTED)/faults.so: tests/scripted/faults.c
$(SCRIPTED)/custom.so: tests/scripted/custom.c
$(SCRIPTED_PLUGINS): tests/scripted/device.h tests/scripted/scripted.h scout/plugin.h scout/gemm.h $(BUILD)/flags
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SCRIPTED_CFLAGS) -o $@ $(filter %.c,$^) -lm
	$(Q)chmod go-w $@ # else it is not loaded, whatever the umask

scout-test: $(PROGRAMS) $(SCRIPTED_PLUGINS)
	$(Q)tests/scout/run.sh $(SCOUT) $(SCRIPTED)
