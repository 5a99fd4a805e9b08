#!/usr/bin/env bash
# Runs every linter, says which one complained, and fails if any did. Called by
# `make lint`, after the C++ side was built (go vet wants its libraries).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
failed=()

check() { # check NAME COMMAND...
  local name=$1 output
  shift
  if output=$("$@" 2>&1); then
    echo "ok   $name"
  else
    printf 'FAIL %s\n%s\n' "$name" "$output"
    failed+=("$name")
  fi
}

# Built once, outside of go.mod: its dependencies are not ours.
staticcheck_version=v0.8.2
static_check() {
  local tools=$PWD/build/tools/staticcheck-$staticcheck_version
  [[ -x $tools/staticcheck ]] || GOBIN=$tools go install "honnef.co/go/tools/cmd/staticcheck@$staticcheck_version"
  "$tools/staticcheck" ./...
}
go_format() { ! git ls-files -z '*.go' | xargs -0 gofmt -l | grep .; }
cpp_format() { git ls-files -z 'csrc/*.cc' 'csrc/*.h' | xargs -0 -r clang-format --dry-run -Werror; }
shell() { { git ls-files -z 'scripts/*.sh' && printf '.ci/run\0'; } | xargs -0 shellcheck; }
# Every file must compile by itself: the precompiled header hides what it forgets.
without_pch() {
  local flags
  flags=$(sed -n 's/.*"command": "\(.*\)",/\1/p' build/compile_commands.json | grep 'csrc/api/status.cc' | head -1 |
    sed 's/-include [^ ]*cmake_pch[^ ]*//; s/ -o .*//; s/-Winvalid-pch//')
  # A source file is compiled as itself, a header as if an empty file included it: compilers judge the two differently
  # (types without linkage, `#pragma once`).
  # shellcheck disable=SC2016 # expanded by the inner shell
  git ls-files 'csrc/*.h' 'csrc/*.cc' ':!csrc/pch.h' ':!csrc/test/' |
    xargs -P "$(nproc)" -I{} sh -c 'case $1 in
      *.h) set -- -include "$1" /dev/null ;;
    esac
    '"$flags"' -fsyntax-only -x c++ "$@"' - {}
}

check gofmt go_format
check "go vet" go vet ./...
check staticcheck static_check
check clang-format cpp_format
check shellcheck shell
# Minutes: in CI, and by hand with WITHOUT_PCH=1.
if [[ ${WITHOUT_PCH:-} == 1 ]]; then check "every file compiles without the precompiled header" without_pch; fi

if [[ ${#failed[@]} != 0 ]]; then
  echo "lint: failed: ${failed[*]}"
  exit 1
fi
