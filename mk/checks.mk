# Tests and checks. Every test script ends with a line "N passed, N failed[, N skipped]"; tests/run.sh adds them up.

.PHONY: test check unit cli page rooms golden golden-update format format-check tidy bench-extract bench-analyze
C_FILES := $(SOURCES) $(HEADERS) $(wildcard tests/*/*.c tests/*/*/*.c)

test:
	$(Q)tests/run.sh
check: export CHECK_TEST := $(TEST)
check:
	$(Q)tests/run.sh $(if $(TEST),one,check)
unit: $(UNIT_PROGRAMS)
	$(Q)tests/unit/run.sh $(BUILD)/unit
cli: $(PROGRAMS) scripted manual
	$(Q)SCOUT=$(abspath $(SCOUT)) SCRIPTED=$(abspath $(SCRIPTED)) tests/cli/run.sh $(PROGRAM)
page: $(PROGRAMS)
	$(Q)tests/page/run.sh $(ANALYZE)
rooms:
	$(Q)tests/rooms/run.sh
golden: $(PROGRAMS)
	$(Q)tests/golden/run.sh $(PROGRAM)
	$(Q)tests/golden/analyze.sh $(ANALYZE)
golden-update: $(PROGRAMS)
	$(Q)tests/golden/run.sh --update $(PROGRAM)
	$(Q)tests/golden/analyze.sh --update $(ANALYZE)

format:
	$(Q)clang-format -i $(C_FILES)
format-check:
	$(Q)clang-format --dry-run -Werror $(C_FILES)

# Two looks at a source: at each function by itself, which reaches its every block; and along calls. Each as far as 10,000
# states of a function. Of 122 faults that were planted by chance (a lost free, a second one, a lost guard, no first
# value) these find 67, as two looks of 75,000 do in three times the time, and either of them alone fewer. What follows no
# path finds the same each time, and looks once.
PATHS_ALONE := --checks=-bugprone-*,-performance-*,-misc-*
comma := ,
look = clang-tidy --quiet $(2) $< -- $(LANGUAGE) $(1) $(WARNINGS) -Xclang -analyzer-config -Xclang $(3)max-nodes=10000 2>/dev/null
look_at = $(call look,$(1)) && $(call look,$(1),$(PATHS_ALONE),mode=shallow$(comma))
# One stamp a source, behind its object, so that a changed header is looked at again and nothing else is.
tidy: $(SOURCES:%.c=$(BUILD)/tidy/%.ok)
$(BUILD)/tidy/%.ok: %.c .clang-tidy $(BUILD)/obj/%.o
	$(say) TIDY $<
	$(Q)mkdir -p $(@D)
	$(Q)$(call look_at)
	$(Q)touch $@

compile_commands.json: $(SOURCES) $(UNIT_SOURCES) $(BUILD)/flags
	$(say) JSON $@
	$(Q)separator='['; for source in $(SOURCES) $(UNIT_SOURCES); do \
	  printf '%s\n{"directory": "%s", "file": "%s", "command": "%s -c %s"}' \
	    "$$separator" '$(CURDIR)' "$$source" '$(CC) $(ALL_CFLAGS)' "$$source"; separator=','; done > $@.new
	$(Q)printf '\n]\n' >> $@.new; mv $@.new $@

bench-extract: $(PROGRAMS)
	$(Q)tests/bench/bench_extract.sh $(PROGRAM)

bench-analyze: $(PROGRAMS)
	$(Q)tests/bench/bench_analyze.sh $(ANALYZE)

# A page of 5,000 operations opens and sorts within a second; the tests only see that it stays within five.
.PHONY: bench-page
bench-page: $(PROGRAMS)
	$(Q)PAGE_MS=1000 tests/page/run.sh $(ANALYZE)

.PHONY: bench-repeat
bench-repeat: $(PROGRAMS)
	$(Q)tests/bench/repeat_cpu.sh $(SCOUT)

# CPU figures on a machine that others use: with nothing, two, four and eight busy loops beside them. A quarter of an hour.
.PHONY: bench-busy
bench-busy: $(PROGRAMS)
	$(Q)tests/bench/busy.sh '$(MAKE)' $(REPETITIONS)

.PHONY: bench-eta
bench-eta: $(PROGRAMS)
	$(Q)tests/bench/eta.sh

# A model as a whole beside onnxruntime, in turns: MODELS (those in models/ that it runs), BATCH, SEQ, BUDGET, TURNS.
.PHONY: bench-peers
bench-peers: export BATCH := $(BATCH)
bench-peers: export SEQ := $(SEQ)
bench-peers: export BUDGET := $(BUDGET)
bench-peers: $(PROGRAMS)
	$(Q)tests/bench/peers_cpu.sh bin/ceiling-scout $(SCOUT) out/venv/bin/python $(or $(MODELS),models/small_resnet.onnx models/transformer_block.onnx)

# How often a comparison of two runs errs: NIGHTS of each kind (10000), counted.
.PHONY: bench-compare
bench-compare: export BENCH_NIGHTS := $(or $(NIGHTS),10000)
bench-compare: $(BUILD)/unit/test_compare_nights
	$(Q)$< "$$BENCH_NIGHTS"

# What it takes to choose a plan for OCCURRENCES (10000) and as many groups that overlap.
.PHONY: bench-plan
bench-plan: export BENCH_OCCURRENCES := $(or $(OCCURRENCES),10000)
bench-plan: $(BUILD)/unit/test_choose
	$(Q)$< "$$BENCH_OCCURRENCES"

# How often the alarms of a zoo err: NIGHTS (365) of OPERATIONS (2000), kept, screened and measured again; counted.
.PHONY: bench-history
bench-history: export BENCH_NIGHTS := $(or $(NIGHTS),365)
bench-history: export BENCH_OPERATIONS := $(or $(OPERATIONS),2000)
bench-history: $(BUILD)/unit/test_history_nights
	$(Q)$<

# What a hit of the cache costs, HITS of them (1000), beside reading the same bytes.
.PHONY: bench-cache
bench-cache: export BENCH_HITS := $(or $(HITS),1000)
bench-cache: $(BUILD)/unit/test_cache_hits
	$(Q)$< "$$BENCH_HITS"
