# The CUDA device, a shared object that scout_batch opens at run time. Only this file needs the toolkit: without one,
# everything else is built and `make cuda` says what is missing. CUDA_ARCHS: compute capabilities to build code for; the
# last one also comes as PTX, which newer GPUs translate for themselves. No kernel has an instruction of 9.0a alone: with
# plain 9.0 the code is the same byte for byte, and nvcc makes it of the PTX instead of translating each file twice.
# KERNELS=quick: compiled fast into slow code, loosely packed, for tests where no GPU is. It has places of its own, and
# never lies beside the programs.

CUDA_ARCHS ?= 90
CUDA_ROOT = $(patsubst %/bin/nvcc,%,$(realpath $(NVCC)))
CUDA_SOURCES := $(sort $(wildcard scout/cuda/*.c scout/cuda/*/*.c))
CUDA_KERNELS := $(sort $(wildcard kernels/*/*.cu))
CUDA_C_FILES := $(CUDA_SOURCES) $(sort $(wildcard scout/cuda/*/*.h kernels/*/*.h))
CUDA_NAMES := $(foreach n,tiles stages clusters,$(BUILD)/cuda/gen/lt_$(n).inc)
# Kernels are the same whatever the mode, and take minutes: one place for all, by the GPUs that they are for.
KERNEL_BUILD = out/build/kernels-$(subst $(eval) ,-,$(strip $(CUDA_ARCHS)))$(KERNELS:%=-%)
CUDA_OBJECTS = $(patsubst %.c,$(BUILD)/cuda/%.o,$(CUDA_SOURCES) scout/device/libraries.c) $(CUDA_KERNELS:%.cu=$(KERNEL_BUILD)/%.o)
ifneq ($(filter-out quick,$(KERNELS)),)
$(error KERNELS=$(KERNELS) is not known; it is quick, or not given)
endif
ifeq ($(KERNELS),quick)
CUDA_DEVICE := $(BUILD)/quick/scout_cuda.so
else
CUDA_DEVICE := $(BIN)/scout_cuda.so
endif
DIST ?= out/dist
DIST_BUILD ?= out/build/dist
DIST_ARCHS := 80 89 90 100

# "90a" would be code for 9.0 alone; its PTX is that of plain 9.0, which every later GPU understands.
cuda_code = -gencode arch=compute_$(1),code=sm_$(1)
cuda_ptx = -gencode arch=compute_$(patsubst %a,%,$(1)),code=compute_$(patsubst %a,%,$(1))
CUDA_TARGETS = $(foreach a,$(CUDA_ARCHS),$(call cuda_code,$(a))) $(call cuda_ptx,$(lastword $(CUDA_ARCHS)))

CUDA_HIDDEN := -fPIC -fvisibility=hidden
CUDA_CFLAGS = $(LANGUAGE) -isystem $(CUDA_ROOT)/include -isystem $(BUILD)/cuda/gen $(OPT_$(MODE)) $(WARNINGS) $(CFLAGS) $(CUDA_HIDDEN)
# No C++ runtime is linked: no exceptions, and no locks around the launch stubs' static data (a worker has one thread).
CUDA_HOST_FLAGS := -fPIC,-fvisibility=hidden,-Wall,-Wextra,-Werror,-fno-exceptions,-fno-threadsafe-statics
# Code is packed as small as it gets: a fifth of the size for a fifth more of compiling. A driver unpacks what a kernel's
# file holds when it is first wanted, in milliseconds. Since 13 one word says how; an older nvcc knows only whether.
ifneq ($(NVCC),)
CUDA_MAJOR := $(shell $(NVCC) --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
CUDA_QUICK := $(filter quick,$(KERNELS))
CUDA_PACKING := -Xfatbin -compress-all
CUDA_LEVEL := -O3 -lineinfo
ifeq ($(filter 10 11 12,$(CUDA_MAJOR)),)
CUDA_PACKING := --compress-mode=$(if $(CUDA_QUICK),speed,size)
CUDA_LEVEL := $(if $(CUDA_QUICK),-Ofc=max,-O3 -lineinfo)
endif
endif
CUDA_NVCC_FLAGS = -std=c++17 -I. $(CUDA_LEVEL) -Werror all-warnings $(CUDA_PACKING) -Xcompiler $(CUDA_HOST_FLAGS) $(CUDA_TARGETS)

.PHONY: cuda dist
ifeq ($(NVCC),)
cuda:
	@echo 'No CUDA toolkit was found (nvcc in PATH, $$CUDA_HOME or /usr/local/cuda): the CUDA device cannot be built.' >&2; exit 4
else
all: $(CUDA_DEVICE)
cuda: $(CUDA_DEVICE)
endif

CUDA_FLAGS_TEXT := $(CC) $(CUDA_CFLAGS) $(CUDA_ARCHS) $(CUDA_SOURCES) $(CUDA_KERNELS)
$(BUILD)/cuda/flags: $(call unless_holds,$(BUILD)/cuda/flags,$(CUDA_FLAGS_TEXT))
	@mkdir -p $(@D); printf '%s\n' '$(CUDA_FLAGS_TEXT)' > $@
KERNEL_FLAGS_TEXT := $(NVCC) $(CUDA_NVCC_FLAGS)
$(KERNEL_BUILD)/flags: $(call unless_holds,$(KERNEL_BUILD)/flags,$(KERNEL_FLAGS_TEXT))
	@mkdir -p $(@D); printf '%s\n' '$(KERNEL_FLAGS_TEXT)' > $@

# Names of cuBLASLt's tiles, stages and clusters, as designated initialisers of arrays of strings.
lt_prefix_tiles := CUBLASLT_MATMUL_TILE_
lt_prefix_stages := CUBLASLT_MATMUL_STAGES_
lt_prefix_clusters := CUBLASLT_CLUSTER_SHAPE_
$(CUDA_NAMES): $(BUILD)/cuda/gen/lt_%.inc: $(CUDA_ROOT)/include/cublasLt.h
	$(say) NAMES $@
	$(Q)mkdir -p $(@D)
	$(Q)sed -n 's/^ *$(lt_prefix_$*)\([0-9A-Za-z]*\) *= *\([0-9][0-9]*\),.*/    [\2] = "\1",/p' $< > $@.new
	$(Q)test -s $@.new && mv $@.new $@

# What kernels that are generated at run time include, as lines of C strings: no file of ours is needed where they run.
CHAIN_LINES := $(foreach n,elementwise_chain elementwise_functions,$(BUILD)/cuda/gen/$(n).inc)
$(CHAIN_LINES): $(BUILD)/cuda/gen/%.inc: kernels/pass/%.cuh
	$(say) LINES $@
	$(Q)mkdir -p $(@D)
	$(Q)sed 's/\\/\\\\/g; s/"/\\"/g; s/^/"/; s/$$/\\n",/' $< > $@.new && mv $@.new $@
$(BUILD)/cuda/scout/cuda/nvrtc/chain_source.o $(BUILD)/obj/scout/cuda/nvrtc/chain_source.o: $(CHAIN_LINES)
# Writing them needs no CUDA: a unit test does it, with or without a toolkit.
$(BUILD)/obj/scout/cuda/nvrtc/chain_source.o: ALL_CFLAGS += -isystem $(BUILD)/cuda/gen
$(BUILD)/unit/test_chain_source: $(BUILD)/obj/scout/cuda/nvrtc/chain_source.o $(BUILD)/obj/scout/cuda/nvrtc/chain_steps.o

$(BUILD)/cuda/scout/%.o: scout/%.c $(BUILD)/cuda/flags | $(CUDA_NAMES)
	$(say) CC $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CUDA_CFLAGS) -MMD -MP -c -o $@ $<

$(KERNEL_BUILD)/kernels/%.o: kernels/%.cu $(KERNEL_BUILD)/flags
	$(say) NVCC $<
	$(Q)mkdir -p $(@D)
	$(Q)$(NVCC) $(CUDA_NVCC_FLAGS) -MMD -MP -c -o $@ $<

# Linked with the runtime inside and nothing of cuBLAS: which library is used is decided, and said, at run time.
$(BUILD)/bin/scout_cuda.so $(BUILD)/quick/scout_cuda.so: $(CUDA_OBJECTS) $(BUILD)/cuda/flags
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-z,defs -Wl,--exclude-libs,ALL -o $@ $(filter %.o,$^) -L$(CUDA_ROOT)/lib64 \
	  -lcudart_static -ldl -lrt -lpthread -lm

# A tree that can be put anywhere: what is installed, with the programs' libraries inside and the device with code for
# every GPU in use. Without a toolkit a device from before is none.
dist: export DIST_TREE := $(DIST)/ceiling-scout
DIST_MAKE = $(MAKE) --no-print-directory KERNELS= STATIC=1 BUILD='$(DIST_BUILD)' CUDA_ARCHS='$(DIST_ARCHS)'
dist:
	$(Q)rm -rf -- "$$DIST_TREE.new" $(if $(NVCC),,'$(DIST_BUILD)/bin/scout_cuda.so')
	$(Q)$(DIST_MAKE) all
	$(Q)$(DIST_MAKE) -s DESTDIR= PREFIX="$$DIST_TREE.new" install
	$(Q)scripts/make_dist.sh "$$DIST_TREE.new" '$(if $(NVCC),$(DIST_ARCHS))'
	$(Q)rm -rf -- "$$DIST_TREE"; mv -- "$$DIST_TREE.new" "$$DIST_TREE"; echo "$$DIST_TREE: $$(du -sh -- "$$DIST_TREE" | cut -f 1)"

# Programs that check the device on a machine that has one (tests/gpu/run.sh); they are built without one.
GPU_CHECKS := $(patsubst tests/gpu/%.c,$(BUILD)/gpu/%,$(sort $(wildcard tests/gpu/check_*.c)))
.PHONY: gpu-checks
gpu-checks: $(CUDA_DEVICE) $(GPU_CHECKS) $(BUILD)/gpu/skinny_cuda.so
$(BUILD)/gpu/skinny_cuda.so: docs/examples/custom_kernel/skinny.cu docs/examples/custom_kernel/Makefile scout/plugin.h scout/op/op.h scout/op/gemm.h
	$(say) NVCC $<
	$(Q)$(MAKE) -s -C $(dir $<) cuda SCOUT_INCLUDE='$(CURDIR)' OUT='$(abspath $(@D))' NVCC=$(NVCC)
# check_kernels reads lists of operations with the harness's own reader, check_run and check_plan launch through the runtime.
$(BUILD)/gpu/check_kernels $(BUILD)/gpu/check_run $(BUILD)/gpu/check_plan: $(PARTS)
$(BUILD)/gpu/check_kernels $(BUILD)/gpu/check_run $(BUILD)/gpu/check_plan: CHECK_LIBS = $(PARTS) $(ALL_LIBS)
$(BUILD)/gpu/check_%: tests/gpu/check_%.c $(KERNEL_BUILD)/kernels/harness/stream.o $(HEADERS) $(BUILD)/cuda/flags
	$(say) CC $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CUDA_CFLAGS) $(ALL_LDFLAGS) -o $@ $< $(filter %.o,$^) $(CHECK_LIBS) -L$(CUDA_ROOT)/lib64 -lcudart_static -ldl -lrt -lpthread -lm

# Candidates with tables of functions in the place of libraries, on machines without a GPU.
CUDA_UNITS := $(patsubst tests/unit/cuda/%.c,$(BUILD)/unit/%,$(sort $(wildcard tests/unit/cuda/test_cuda_*.c)))
CUDA_FAKED_kinds := cpu_info_get cpu_openblas_get lt_open dnn_open
CUDA_FAKED_offers := lt_ready sparse_lt_ready dnn_ready
CUDA_FAKED_product := lt_open lt_ready move_copy_launch tail_launch padded_rows_launch
CUDA_FAKED_quantised := lt_open lt_ready product_bytes_input_launch product_bytes_finish_launch product_bytes_sums_launch \
  product_bytes_zeros_launch kernels_transpose whole_conv \
  cudaMemsetAsync
$(BUILD)/unit/test_cuda_%: tests/unit/cuda/test_cuda_%.c $(filter-out %/libraries.o,$(CUDA_OBJECTS)) $(PARTS) $(HEADERS) $(BUILD)/cuda/flags
	$(say) CC $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CUDA_CFLAGS) $(ALL_LDFLAGS) $(CUDA_FAKED_$*:%=-Wl,--wrap=%) -o $@ $< $(filter %.o,$^) $(PARTS) -L$(CUDA_ROOT)/lib64 -lcudart_static $(ALL_LIBS) -ldl -lrt -lpthread -lm

C_FILES += $(CUDA_C_FILES)
ifneq ($(NVCC),)
tidy: $(CUDA_SOURCES:%.c=$(BUILD)/tidy/%.ok)
units unit: $(CUDA_UNITS)
.PHONY: kinds-update
golden-update: kinds-update
kinds-update: $(BUILD)/unit/test_cuda_kinds
	$(Q)$< --update
endif
$(BUILD)/tidy/scout/cuda/%.ok: scout/cuda/%.c .clang-tidy $(BUILD)/cuda/scout/cuda/%.o
	$(say) TIDY $<
	$(Q)mkdir -p $(@D)
	$(Q)$(call look_at,-isystem $(CUDA_ROOT)/include -isystem $(BUILD)/cuda/gen)
	$(Q)touch $@

-include $(CUDA_OBJECTS:.o=.d)
