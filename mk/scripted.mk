# The plugins of the tests: a scripted device with a virtual clock, and candidates for it that fail on purpose. Never
# sanitized: a sanitizer would end a process before the supervisor could.
SCRIPTED := $(BUILD)/scripted
SCRIPTED_PLUGINS := $(addprefix $(SCRIPTED)/,device.so faults.so custom.so)
SCRIPTED_CFLAGS := $(filter-out -fsanitize%,$(LANGUAGE)) -O2 -g $(WARNINGS) -fPIC -shared -Wl,-z,defs

.PHONY: scripted scout-test
scripted: $(SCRIPTED_PLUGINS)
$(SCRIPTED)/device.so: tests/fakes/scripted/device.c tests/fakes/scripted/filling.c tests/fakes/scripted/products.c
$(SCRIPTED)/faults.so: tests/fakes/scripted/faults.c
$(SCRIPTED)/custom.so: tests/fakes/scripted/custom.c
$(SCRIPTED_PLUGINS): tests/fakes/scripted/device.h tests/fakes/scripted/scripted.h scout/plugin.h scout/op/gemm.h $(BUILD)/flags
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SCRIPTED_CFLAGS) -o $@ $(filter %.c,$^) -lm
	$(Q)chmod go-w $@ # else it is not loaded, whatever the umask

scout-test: $(PROGRAMS) $(SCRIPTED_PLUGINS)
	$(Q)tests/scout/run.sh $(SCOUT) $(SCRIPTED)
