# Rules. Sources are found by wildcard: a program is made of common/ and its own folder; every tests/unit/*/test_*.c and
# tests/fuzz/fuzz_*.c is a program of its own, linked with what it needs of an archive of all but the main files.
# mk/cuda.mk makes the CUDA device.

COMMON_SOURCES := $(sort $(wildcard common/*.c))
EXTRACT_SOURCES := $(sort $(wildcard extract/*.c extract/*/*.c))
SCOUT_SOURCES := $(sort $(filter-out scout/cuda/%,$(wildcard scout/*.c scout/*/*.c scout/*/*/*.c)))
ANALYZE_SOURCES := $(sort $(wildcard analyze/*.c analyze/*/*.c))
DISPATCH_SOURCES := $(sort $(wildcard dispatch/*.c))
RUNTIME_SOURCES := $(sort $(wildcard runtime/*.c))
FRONT_SOURCES := $(sort $(wildcard front/*.c))
SOURCES := $(COMMON_SOURCES) $(EXTRACT_SOURCES) $(SCOUT_SOURCES) $(ANALYZE_SOURCES) $(DISPATCH_SOURCES) $(RUNTIME_SOURCES) $(FRONT_SOURCES)
MAIN_SOURCES := extract/extract_main.c scout/scout_main.c analyze/analyze_main.c front/front_main.c
# Threads that share anything are a worker's and the runtime's: the thread sanitizer builds these and their tests alone.
TRIED_tsan := common/% scout/% dispatch/% runtime/%
PART_SOURCES := $(filter-out $(MAIN_SOURCES),$(filter $(or $(TRIED_$(MODE)),%),$(SOURCES)))
UNIT_SOURCES := $(sort $(filter-out tests/unit/cuda/test_cuda_%,$(wildcard tests/unit/*/test_*.c)))
UNIT_HELPERS := $(sort $(filter-out tests/unit/cuda/% $(UNIT_SOURCES),$(wildcard tests/unit/*/*.c)) $(wildcard tests/fakes/*.c))
FUZZ_SOURCES := $(sort $(wildcard tests/fuzz/fuzz_*.c))
FUZZ_HELPERS := $(filter-out $(FUZZ_SOURCES),$(wildcard tests/fuzz/*.c))
HEADERS := $(sort $(wildcard common/*.h extract/*.h extract/*/*.h scout/*.h scout/*/*.h scout/*/*/*.h analyze/*.h analyze/*/*.h dispatch/*.h runtime/*.h front/*.h tests/*/*.h tests/*/*/*.h))
PROTOS := $(sort $(wildcard extract/*/*.proto))

GENERATED := $(patsubst %.proto,$(BUILD)/gen/%.pb-c.c,$(notdir $(PROTOS)))
PAGE_ASSETS := $(BUILD)/gen/page_assets.o
VERSION_TEXT := $(BUILD)/gen/version.o
OBJECTS := $(PART_SOURCES:%.c=$(BUILD)/obj/%.o) $(GENERATED:.c=.o) $(PAGE_ASSETS) $(VERSION_TEXT)
objects_of = $(patsubst %.c,$(BUILD)/obj/%.o,$(COMMON_SOURCES) $(1)) $(VERSION_TEXT)
MAIN_OBJECTS := $(MAIN_SOURCES:%.c=$(BUILD)/obj/%.o)
UNIT_PROGRAMS := $(patsubst %.c,$(BUILD)/unit/%,$(notdir $(UNIT_SOURCES)))
FUZZ_PROGRAMS := $(FUZZ_SOURCES:tests/fuzz/%.c=$(BUILD)/fuzz/%)

# A build in the default release folder also puts its programs where people look for them.
PROGRAM_NAMES := extract_ops scout_batch analyze ceiling-scout
BUILT := $(PROGRAM_NAMES:%=$(BUILD)/bin/%)
ifeq ($(MODE):$(BUILD),release:$(DEFAULT_BUILD))
BIN := bin
else
BIN := $(BUILD)/bin
endif
PROGRAMS := $(PROGRAM_NAMES:%=$(BIN)/%)
PROGRAM := $(BIN)/extract_ops
SCOUT := $(BIN)/scout_batch
ANALYZE := $(BIN)/analyze
FRONT := $(BIN)/ceiling-scout
FRONT_SCRIPTS := scripts/profile.sh scripts/profile_ncu.sh scripts/validate.sh scripts/zoo_fetch.sh scripts/collect_evidence.sh

.PHONY: modal units fuzzers FORCE
modal: $(if $(filter fuzz,$(MODE)),fuzzers,$(BUILT))
units: $(UNIT_PROGRAMS)
fuzzers: $(FUZZ_PROGRAMS)

# Changed flags rebuild everything; the same flags nothing. A removed source links again.
FLAGS_TEXT := $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(ALL_LIBS)
$(BUILD)/flags: $(call unless_holds,$(BUILD)/flags,$(FLAGS_TEXT))
	@mkdir -p $(@D); printf '%s\n' '$(FLAGS_TEXT)' > $@
$(BUILD)/objects: $(call unless_holds,$(BUILD)/objects,$(OBJECTS))
	@mkdir -p $(@D); printf '%s\n' '$(OBJECTS)' > $@

# Headers of generated code must be there before anything that may include them is compiled; afterwards -MMD knows what does.
$(BUILD)/gen/%.pb-c.c $(BUILD)/gen/%.pb-c.h &: extract/read/%.proto
	$(say) PROTOC $<
	$(Q)mkdir -p $(BUILD)/gen
	$(Q)protoc-c --proto_path=extract/read --c_out=$(BUILD)/gen $<

# The sheet and the script of report.html, as editors and linters know them, become texts of the program.
$(BUILD)/gen/page_assets.c: analyze/page/page_assets.sh analyze/page/page.css analyze/page/page.js
	$(say) EMBED $@
	$(Q)mkdir -p $(@D)
	$(Q)$^ > $@

# The Python module that `analyze export triton` writes, as lines of C strings.
TRITON_LINES := $(BUILD)/gen/export_triton_lines.inc
$(TRITON_LINES): analyze/export/triton.py
	$(say) LINES $@
	$(Q)mkdir -p $(@D)
	$(Q)sed -e 's/\\/\\\\/g; s/"/\\"/g; s/^/"/; s/$$/\\n",/' $< > $@.new && mv $@.new $@
$(BUILD)/obj/analyze/export/export_triton.o: $(TRITON_LINES)

# The file VERSION is the one owner of the programs' version.
$(BUILD)/gen/version.c: VERSION
	$(Q)mkdir -p $(@D)
	$(Q)printf 'extern const char version_text[];\nconst char version_text[] = "%s (ceiling-scout)";\n' "$$(cat $<)" > $@

$(BUILD)/gen/%.o: $(BUILD)/gen/%.c $(BUILD)/flags
	$(say) CC $@
	$(Q)$(CC) $(LANGUAGE) $(OPT_$(MODE)) $(SHARED_CFLAGS) $(CFLAGS) -w -MMD -MP -c -o $@ $<

$(BUILD)/obj/%.o: %.c $(BUILD)/flags | $(GENERATED:.c=.h)
	$(say) CC $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/bin/extract_ops: $(call objects_of,$(EXTRACT_SOURCES)) $(GENERATED:.c=.o)
$(BUILD)/bin/scout_batch: $(call objects_of,$(SCOUT_SOURCES))
$(BUILD)/bin/analyze: $(call objects_of,$(ANALYZE_SOURCES) $(DISPATCH_SOURCES)) $(PAGE_ASSETS)
$(BUILD)/bin/ceiling-scout: $(call objects_of,$(FRONT_SOURCES)) $(FRONT_SCRIPTS:scripts/%=$(BUILD)/lib/ceiling-scout/%)
$(BUILD)/lib/ceiling-scout/%.sh: scripts/%.sh
	$(Q)install -D -m 755 $< $@
$(BUILD)/bin/analyze: BUILT_LIBS := $(SQLITE_LIBS)
$(BUILT): $(BUILD)/flags $(BUILD)/objects
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(BUILT_LIBS) $(ALL_LIBS)

bin/%: $(BUILD)/bin/% FORCE
	$(Q)cmp -s $< $@ || { mkdir -p $(@D) && cp $< $@.new && mv $@.new $@; }

# What these two tests make fail goes through them, and their own arena (of tiny chunks) comes before the ordinary one.
FAULTS := malloc calloc realloc free strdup strndup realpath mmap munmap open memfd_create close fstat read pread write fsync rename
LDFLAGS_test_faults := $(FAULTS:%=-Wl,--wrap=%) -Wl,-z,muldefs
STUDY_FAULTS := malloc calloc realloc free strdup strndup realpath open close fstat read write fsync rename opendir closedir
LDFLAGS_test_study_faults := $(STUDY_FAULTS:%=-Wl,--wrap=%) -Wl,-z,muldefs

# A launch of the runtime that is ready calls none of these.
UNREADY := malloc calloc realloc pthread_mutex_lock
LDFLAGS_test_run_threads := $(UNREADY:%=-Wl,--wrap=%)

# Archives that only name their objects: a test holds what it calls, and is linked in a moment.
PARTS := $(BUILD)/parts.a
HELPERS := $(BUILD)/helpers.a
# Rooms that no fuzzer calls are not compiled for them, so the mode has no other tests.
UNFUZZED := front runtime scout/plan scout/run
ifneq ($(and $(filter fuzz,$(MODE)),$(filter unit units,$(MAKECMDGOALS))),)
$(error MODE=fuzz builds the fuzzers alone: make MODE=fuzz fuzzers)
endif
$(PARTS): $(if $(filter fuzz,$(MODE)),$(filter-out $(UNFUZZED:%=$(BUILD)/obj/%/%),$(OBJECTS)),$(OBJECTS)) $(BUILD)/objects
$(HELPERS): $(UNIT_HELPERS:%.c=$(BUILD)/obj/%.o) $(BUILD)/objects
$(PARTS) $(HELPERS):
	$(Q)rm -f $@; $(AR) rcsT $@ $(filter %.o,$^)

# Most tests call what computes, and hardly compute themselves: optimised, they take four times as long to compile.
COMPUTING := tests/unit/cpu/test_cpu_reference.c
$(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out $(COMPUTING),$(UNIT_SOURCES))): ALL_CFLAGS += -O0
$(foreach s,$(UNIT_SOURCES),$(eval $(BUILD)/unit/$(basename $(notdir $(s))): $(BUILD)/obj/$(s:.c=.o)))
$(UNIT_PROGRAMS): $(BUILD)/unit/%: $(HELPERS) $(PARTS)
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) $(LDFLAGS_$*) -o $@ $(filter %.o,$^) $(HELPERS) $(PARTS) $(SQLITE_LIBS) $(ALL_LIBS)

$(BUILD)/fuzz/%: $(BUILD)/obj/tests/fuzz/%.o $(FUZZ_HELPERS:%.c=$(BUILD)/obj/%.o) $(PARTS)
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -fsanitize=fuzzer $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(PARTS) $(SQLITE_LIBS) $(ALL_LIBS)

.SECONDARY:
-include $(patsubst %.o,%.d,$(OBJECTS) $(MAIN_OBJECTS) $(patsubst %.c,$(BUILD)/obj/%.o,$(UNIT_SOURCES) $(UNIT_HELPERS) $(FUZZ_SOURCES) $(FUZZ_HELPERS)))
