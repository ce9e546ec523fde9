# SPDX-License-Identifier: BSD-2-Clause
# A short face over the CMake presets (CMakePresets.json). Builds go to build/<preset>.
PRESET ?= dev
PREFIX ?= /usr/local

# tests compare what is printed
test check soak bench: export LANGUAGE = en

all: build

build:
	@mkdir -p build
	@cmake --preset $(PRESET) >build/configure-$(PRESET).log 2>&1 || \
		{ cat build/configure-$(PRESET).log; exit 1; }
	@cmake --build --preset $(PRESET)

# Two processes exchange RDMA SENDs; needs only the small set of packages.
demo:
	@scripts/bootstrap build
	@$(MAKE) --no-print-directory build PRESET=release
	@build/release/bin/verbena demo

# All tests that need no privileges; closes with "N passed, N failed, N skipped".
# AGAIN=--again: a few that fail are run once more, one at a time.
test:
	@scripts/bootstrap build test
	@$(MAKE) --no-print-directory build PRESET=$(PRESET)
	@scripts/run-tests $(AGAIN) $(PRESET)

# A relocatable tree: make install PREFIX=DIR, then DIR/bin/verbena, moved wherever one likes.
install:
	@scripts/bootstrap build
	@$(MAKE) --no-print-directory build PRESET=release
	@cmake --install build/release --prefix $(abspath $(PREFIX))

# Everything a change must pass before it is committed; the same as CI's first stage.
check:
	@scripts/bootstrap build test check
	@scripts/check

# The long forms; with PRESET=fuzz an hour of libFuzzer for each target, too.
soak:
	@scripts/bootstrap build test $(filter fuzz,$(PRESET))
	@$(MAKE) --no-print-directory build PRESET=$(PRESET)
	@scripts/run-tests $(PRESET) -L soak

bench:
	@scripts/bootstrap build test
	@$(MAKE) --no-print-directory build PRESET=release
	@bench/run

# After a sentence has changed: what is to be translated, and the pages made of it.
words:
	@scripts/words
	@scripts/troubleshooting

clean:
	rm -rf build

.PHONY: all build demo test install check soak bench words clean
