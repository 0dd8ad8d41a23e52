# libscout_dispatch, static and shared: what deployment links. Its objects are those of the build; it
# needs the C library alone. Its version is that of its symbols (dispatch/scout_dispatch.map).

DISPATCH_VERSION := 1.0.0
DISPATCH_SONAME := libscout_dispatch.so.$(firstword $(subst ., ,$(DISPATCH_VERSION)))
DISPATCH_HEADERS := dispatch/scout_dispatch.h dispatch/scout_dispatch_key.h dispatch/scout_dispatch_index.h dispatch/scout_dispatch_device.h
DISPATCH_OBJECTS := $(DISPATCH_SOURCES:%.c=$(BUILD)/obj/%.o)
DISPATCH_STATIC := $(BUILD)/lib/libscout_dispatch.a
DISPATCH_SHARED := $(BUILD)/lib/libscout_dispatch.so.$(DISPATCH_VERSION)

.PHONY: dispatch-library bench-dispatch
all: dispatch-library
dispatch-library: $(DISPATCH_STATIC) $(DISPATCH_SHARED)

# One object, in which what is not for others has no name any more.
$(DISPATCH_STATIC): $(DISPATCH_OBJECTS)
	$(say) AR $@
	$(Q)mkdir -p $(@D); rm -f $@
	$(Q)$(CC) -r -nostdlib -o $(@D)/scout_dispatch.o $^ && objcopy --localize-hidden $(@D)/scout_dispatch.o
	$(Q)$(AR) rcs $@ $(@D)/scout_dispatch.o && rm $(@D)/scout_dispatch.o

$(DISPATCH_SHARED): $(DISPATCH_OBJECTS) dispatch/scout_dispatch.map
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-soname,$(DISPATCH_SONAME) -Wl,--version-script=dispatch/scout_dispatch.map -Wl,-z,defs \
	  -Wl,-z,relro,-z,now -o $@ $(filter %.o,$^) -lpthread
	$(Q)ln -sf $(@F) $(@D)/$(DISPATCH_SONAME) && ln -sf $(DISPATCH_SONAME) $(@D)/libscout_dispatch.so

# What a generated dispatch.h holds of the library, as lines of C strings.
DISPATCH_LINES := $(BUILD)/gen/scout_dispatch_lines.inc
$(DISPATCH_LINES): dispatch/scout_dispatch_key.h dispatch/scout_dispatch_index.h dispatch/scout_dispatch_device.h
	$(say) LINES $@
	$(Q)mkdir -p $(@D)
	$(Q)sed -e '/^#include "dispatch\//d' -e 's/\\/\\\\/g; s/"/\\"/g; s/^/"/; s/$$/\\n",/' $^ > $@.new && mv $@.new $@
$(BUILD)/obj/analyze/table/table_header.o: $(DISPATCH_LINES)

# Headers, the library in both forms and what pkg-config says of it.
.PHONY: install-dispatch
install: install-dispatch
install-dispatch: dispatch-library
	install -d -- "$$INSTALL_ROOT/include/ceiling-scout/dispatch" "$$INSTALL_ROOT/lib/pkgconfig"
	install -m 644 -- $(DISPATCH_HEADERS) "$$INSTALL_ROOT/include/ceiling-scout/dispatch/"
	install -m 644 -- $(DISPATCH_STATIC) "$$INSTALL_ROOT/lib/libscout_dispatch.a"
	install -m 755 -- $(DISPATCH_SHARED) "$$INSTALL_ROOT/lib/$(notdir $(DISPATCH_SHARED))"
	ln -sf -- $(notdir $(DISPATCH_SHARED)) "$$INSTALL_ROOT/lib/$(DISPATCH_SONAME)"
	ln -sf -- $(DISPATCH_SONAME) "$$INSTALL_ROOT/lib/libscout_dispatch.so"
	$(Q)sed 's|@VERSION@|$(DISPATCH_VERSION)|' dispatch/scout_dispatch.pc.in > "$$INSTALL_ROOT/lib/pkgconfig/scout_dispatch.pc"

# Lookups in a table of ten thousand made-up operations, beside a hash table with text keys and a list.
bench-dispatch: $(ANALYZE) dispatch-library
	$(Q)tests/bench/bench_dispatch.sh $(ANALYZE) $(BUILD)/lib
