# libscout_run, static and shared: what launches what a table names. It is made of what scout_batch measures with: the
# CPU device, the reader of operations, their kinds. The CUDA device is the plugin that scout_batch opens too.

RUNTIME_VERSION := 1.0.0
RUNTIME_SONAME := libscout_run.so.$(firstword $(subst ., ,$(RUNTIME_VERSION)))
RUNTIME_HEADERS := runtime/scout_run.h
RUNTIME_ROOMS := scout/terms scout/cache scout/device scout/input scout/kinds scout/timing scout/fusion scout/ceilings \
  scout/measure scout/cpu scout/cpu/device scout/cpu/kernels scout/cpu/onednn scout/cpu/products scout/cpu/reference
RUNTIME_PLAN := scout/plan/binding.c scout/plan/binding_fused.c scout/plan/place.c scout/plan/plan.c
RUNTIME_PARTS := $(COMMON_SOURCES) $(wildcard $(RUNTIME_ROOMS:%=%/*.c)) $(RUNTIME_PLAN) $(RUNTIME_SOURCES)
RUNTIME_OBJECTS := $(RUNTIME_PARTS:%.c=$(BUILD)/obj/%.o)
RUNTIME_STATIC := $(BUILD)/lib/libscout_run.a
RUNTIME_SHARED := $(BUILD)/lib/libscout_run.so.$(RUNTIME_VERSION)
RUNTIME_LIBRARIES := $(filter jansson libxxhash,$(LIBRARIES))
RUNTIME_LIBS := $(shell pkg-config --libs $(RUNTIME_LIBRARIES) 2>/dev/null)
# A distribution's libjansson.a is made for programs. The one thing in it that no shared library may have is the address of
# stdin, which json_loadf compares with, and which nothing here calls: there it is a word of its own.
ifeq ($(STATIC),1)
RUNTIME_JANSSON := $(BUILD)/lib/jansson_shared.a
RUNTIME_LIBS := $(RUNTIME_JANSSON) -Wl,-Bstatic $(filter-out -ljansson,$(RUNTIME_LIBS)) -Wl,-Bdynamic
$(RUNTIME_SHARED): $(RUNTIME_JANSSON)
$(RUNTIME_JANSSON): $(BUILD)/flags
	$(say) AR $@
	$(Q)mkdir -p $(@D)
	$(Q)objcopy --redefine-sym stdin=json_no_stdin "$$($(CC) -print-file-name=libjansson.a)" $@.new
	$(Q)echo 'void *json_no_stdin;' | $(CC) -fPIC -fvisibility=hidden -x c -c -o $(@D)/json_no_stdin.o -
	$(Q)$(AR) rs $@.new $(@D)/json_no_stdin.o 2>/dev/null; rm $(@D)/json_no_stdin.o; mv $@.new $@
endif

.PHONY: runtime bench-run
all: runtime
runtime: $(RUNTIME_STATIC) $(RUNTIME_SHARED)

# As libscout_dispatch.a, which a program links behind it.
$(RUNTIME_STATIC): $(RUNTIME_OBJECTS) $(VERSION_TEXT)
	$(say) AR $@
	$(Q)mkdir -p $(@D); rm -f $@
	$(Q)$(CC) -r -nostdlib -o $(@D)/scout_run.o $^ && objcopy --localize-hidden $(@D)/scout_run.o
	$(Q)$(AR) rcs $@ $(@D)/scout_run.o && rm $(@D)/scout_run.o

$(RUNTIME_SHARED): $(RUNTIME_OBJECTS) $(DISPATCH_OBJECTS) $(VERSION_TEXT) runtime/scout_run.map
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-soname,$(RUNTIME_SONAME) -Wl,--version-script=runtime/scout_run.map -Wl,-z,defs \
	  -Wl,-z,relro,-z,now -Wl,--gc-sections -o $@ $(filter %.o,$^) $(RUNTIME_LIBS) -lm -ldl -lpthread
	$(Q)ln -sf $(@F) $(@D)/$(RUNTIME_SONAME) && ln -sf $(RUNTIME_SONAME) $(@D)/libscout_run.so

.PHONY: install-runtime
install: install-runtime
install-runtime: runtime install-dispatch
	install -d -- "$$INSTALL_ROOT/include/ceiling-scout/runtime" "$$INSTALL_ROOT/lib/pkgconfig"
	install -m 644 -- $(RUNTIME_HEADERS) "$$INSTALL_ROOT/include/ceiling-scout/runtime/"
	install -m 644 -- $(RUNTIME_STATIC) "$$INSTALL_ROOT/lib/libscout_run.a"
	install -m 755 -- $(RUNTIME_SHARED) "$$INSTALL_ROOT/lib/$(notdir $(RUNTIME_SHARED))"
	ln -sf -- $(notdir $(RUNTIME_SHARED)) "$$INSTALL_ROOT/lib/$(RUNTIME_SONAME)"
	ln -sf -- $(RUNTIME_SONAME) "$$INSTALL_ROOT/lib/libscout_run.so"
	$(Q)sed 's|@VERSION@|$(RUNTIME_VERSION)|' runtime/scout_run.pc.in > "$$INSTALL_ROOT/lib/pkgconfig/scout_run.pc"

# What a launch costs beside calling the plan that it launches.
$(BUILD)/bench/bench_run: tests/bench/bench_run.c $(PARTS) $(BUILD)/flags
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $< $(PARTS) $(SQLITE_LIBS) $(ALL_LIBS)
bench-run: $(BUILD)/bench/bench_run
	$(Q)$< $(BLOCKS)
