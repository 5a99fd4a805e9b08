# assay's build. `make demo` and `make test` are all that most people need;
# docs/build.md explains the rest.

BUILD    := build
PREFIX   ?= /usr/local
LIBTORCH ?=
JOBS     ?= $(shell nproc 2>/dev/null || echo 2)
# More options of CMakeLists.txt, for example CMAKE_FLAGS=-DASSAY_SANITIZE=ON.
CMAKE_FLAGS ?=
export LIBTORCH

SETUP := scripts/setup.sh

.PHONY: help demo test asan build lib bench install lint fmt clean
.DEFAULT_GOAL := help

help: ## what there is to make
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name what; do \
	  printf '  make %-9s %s\n' "$$name" "$$what"; done

demo: build ## a search on a trained network and three photographs: build/demo/report.html
	@scripts/demo.sh

test: ## everything is right: tests of Go and of C++
	@$(SETUP) test
	@$(MAKE) --no-print-directory program
	@cmake --build $(BUILD) -j $(JOBS)
	@scripts/test.sh

asan: ## damaged images through the decoders under AddressSanitizer and UBSan (ASSAY_MUTATIONS=n a format)
	@$(SETUP) test
	@$(MAKE) --no-print-directory configure
	@cmake --build $(BUILD) -j $(JOBS) --target image_fuzz
	@$(BUILD)/bin/image_fuzz

build: setup program ## build/assay, which runs from any folder

.PHONY: setup program native configure
setup: ## the tools, libtorch and weights (found or downloaded)
	@$(SETUP)

lib: setup native ## the C++ side alone: build/lib (LIBTORCH=/path chooses another libtorch)

# build/libtorch is setup.sh's choice. CMake's messages are shown only where they matter.
configure:
	@LIBTORCH= cmake -S . -B $(BUILD) -G Ninja -DLIBTORCH="$$(readlink -f $(BUILD)/libtorch)" $(CMAKE_FLAGS) \
	  >$(BUILD)/cmake.log 2>&1 || { cat $(BUILD)/cmake.log >&2; exit 1; }

native: configure
	@cmake --build $(BUILD) -j $(JOBS) --target torchx cgotorch

program: native
	go build -o $(BUILD)/assay ./cmd/assay

bench: build ## speed against plain PyTorch, written to docs/benchmarks.md
	@scripts/bench.sh

install: build ## bin/ and lib/ under PREFIX, which may be moved; BUNDLE=1 takes libtorch along
	@BUNDLE=$(BUNDLE) scripts/install.sh "$(DESTDIR)$(PREFIX)"

lint: ## gofmt, vet, staticcheck, clang-format, shellcheck
	@$(SETUP) lint
	@$(MAKE) --no-print-directory native
	@scripts/lint.sh

fmt: ## formats Go and C++
	gofmt -w $$(git ls-files '*.go')
	clang-format -i $$(git ls-files 'csrc/*.cc' 'csrc/*.h')

clean: ## removes build/ (downloads stay in the cache)
	rm -rf $(BUILD)
