# Modes and flags: which compiler, which checks, which folder. A mode never shares a build folder with another one.

ifeq ($(origin CC),default)
CC := gcc
endif
MODE ?= release
MODES := release debug asan tsan fuzz
ifeq ($(if $(word 2,$(MODE)),,$(filter $(MODES),$(MODE))),)
$(error MODE=$(MODE) is none of: $(MODES))
endif
ifeq ($(MODE),fuzz)
override CC := clang
endif

V ?= 0
ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-8s %s\n'
endif

DEFAULT_BUILD := out/build/$(MODE)-$(notdir $(CC))$(if $(filter 1,$(STATIC)),-static)
BUILD ?= $(DEFAULT_BUILD)

OPT_release := -O2 -g
OPT_debug := -O0 -g3
# A sanitizer's build reports lines and no values: a fifth less to compile.
OPT_asan := -O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
OPT_tsan := -O1 -g1 -fno-omit-frame-pointer -fsanitize=thread
OPT_fuzz := -O1 -g1 -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
LINK_asan := -fsanitize=address,undefined
LINK_tsan := -fsanitize=thread
LINK_fuzz := -fsanitize=address,undefined

WARNINGS := -Wall -Wextra -Wshadow -Wpedantic -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 -Werror
LIBRARIES := libprotobuf-c jansson libxxhash
LIBRARY_FLAGS := $(shell pkg-config --cflags --libs $(LIBRARIES) 2>/dev/null)
LIBRARY_LIBS := $(filter -L% -l%,$(LIBRARY_FLAGS))
LIBRARY_CFLAGS := $(patsubst -I%,-isystem%,$(filter-out $(LIBRARY_LIBS),$(LIBRARY_FLAGS)))
ifeq ($(LIBRARY_LIBS),)
ifeq ($(filter help clean distclean,$(MAKECMDGOALS)),)
$(error Libraries are missing ($(LIBRARIES)): run scripts/setup.sh first)
endif
endif
# The history of analyze alone needs SQLite.
SQLITE_LIBS := $(shell pkg-config --libs sqlite3 2>/dev/null)
ifeq ($(SQLITE_LIBS),)
ifeq ($(filter help clean distclean,$(MAKECMDGOALS)),)
$(error Libraries are missing (sqlite3): run scripts/setup.sh first)
endif
endif
ifeq ($(STATIC),1)
SQLITE_LIBS := -Wl,-Bstatic $(SQLITE_LIBS) -Wl,-Bdynamic
LIBRARY_LIBS := -Wl,-Bstatic $(LIBRARY_LIBS) -Wl,-Bdynamic
endif

CFLAGS ?=
LDFLAGS ?=
LANGUAGE := -std=c11 -D_GNU_SOURCE -I. -isystem $(BUILD)/gen $(LIBRARY_CFLAGS)
# What the libraries are made of is what the programs are made of: all of it can be shared, and hides its names.
# Nothing reads errno behind a function of mathematics, and a square root that may set it is no vector's.
SHARED_CFLAGS := -fPIC -fvisibility=hidden -fno-math-errno
ALL_CFLAGS := $(LANGUAGE) $(OPT_$(MODE)) $(SHARED_CFLAGS) $(WARNINGS) $(CFLAGS)
ALL_LDFLAGS := $(LINK_$(MODE)) $(LDFLAGS)
ALL_LIBS := $(LIBRARY_LIBS) -lm -ldl -lpthread

# $(call unless_holds,FILE,TEXT): FORCE where the file holds another text (blanks apart), so that its rule runs only then.
unless_holds = $(call unless_same,<$(strip $(file <$(1)))>,<$(strip $(2))>)
unless_same = $(if $(and $(findstring $(1),$(2)),$(findstring $(2),$(1))),,FORCE)

# The CUDA toolkit is looked for, and said, even where nothing needs it.
NVCC := $(if $(filter no,$(CUDA)),,$(firstword $(if $(CUDA_HOME),$(wildcard $(CUDA_HOME)/bin/nvcc)) $(wildcard $(addsuffix /nvcc,$(subst :, ,$(PATH)))) $(wildcard /usr/local/cuda/bin/nvcc)))
CUDA_SAYS = $(if $(NVCC),$(shell $(NVCC) --version | sed -n 's/.*release \([0-9.]*\).*/\1/p') at $(patsubst %/bin/nvcc,%,$(NVCC)),$(if $(filter no,$(CUDA)),not wanted,none found): the CUDA device is left out)
