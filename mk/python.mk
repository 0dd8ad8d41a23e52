# The Python package: what it needs of the C code beside libscout_dispatch, and its wheel.

# How zeros of weights are counted, as scout_batch counts them; the package's own, and no library for others. Objects of its
# own: those of the build are hidden in libraries.
SPARSITY_OBJECTS := $(addprefix $(BUILD)/python/,scout/input/sparsity.o scout/input/sparsity_convert.o common/dtype.o)
SPARSITY_SHARED := $(BUILD)/lib/libscout_sparsity.so.1

all: $(SPARSITY_SHARED)
$(BUILD)/python/%.o: %.c $(BUILD)/flags
	$(say) CC $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -fvisibility=default -MMD -MP -c -o $@ $<
-include $(SPARSITY_OBJECTS:.o=.d)
$(SPARSITY_SHARED): $(SPARSITY_OBJECTS) python/sparsity.map
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-soname,$(@F) -Wl,--version-script=python/sparsity.map -Wl,-z,defs -Wl,-z,relro,-z,now \
	  -o $@ $(filter %.o,$^) -Wl,--as-needed $(LIBRARY_LIBS) -lm

.PHONY: install-python wheel
install: install-python
install-python: $(SPARSITY_SHARED)
	install -D -m 755 -- $(SPARSITY_SHARED) "$$INSTALL_ROOT/lib/ceiling-scout/$(notdir $(SPARSITY_SHARED))"

# Of the tree for other machines, so that it holds the programs with their libraries inside.
wheel: dist
	$(Q)python3 -B python/make_wheel.py "$(DIST)/ceiling-scout" out/wheel
