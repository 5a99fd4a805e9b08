#!/usr/bin/env bash
# Lays out PREFIX/bin/assay and PREFIX/lib/*.so, which find each other wherever
# the folder is moved. They find libtorch in PREFIX/lib/libtorch if it was taken
# along (BUNDLE=1), else where it was when they were built (the cache).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
prefix=${1:?usage: scripts/install.sh PREFIX}
libtorch=$(readlink -f "$root/build/libtorch")

install -d "$prefix/bin" "$prefix/lib"
install -m 755 "$root/build/assay" "$prefix/bin/assay"
install -m 755 "$root"/build/lib/libtorchx.so "$root"/build/lib/libcgotorch.so "$prefix/lib/"
install -d "$prefix/share/doc/assay"
install -m 644 "$root/LICENSE" "$prefix/share/doc/assay/"

rm -rf "$prefix/lib/libtorch"
if [[ ${BUNDLE:-} == 1 ]]; then
  # nvidia/ has to stand beside torch/: libtorch looks for it there.
  install -d "$prefix/lib/libtorch/torch"
  cp -a "$libtorch/lib" "$prefix/lib/libtorch/torch/lib"
  if [[ -d $libtorch/../nvidia ]]; then cp -a "$libtorch/../nvidia" "$prefix/lib/libtorch/"; fi
  echo "installed $prefix/bin/assay with its own libtorch"
else
  echo "installed $prefix/bin/assay; it uses libtorch in $libtorch (BUNDLE=1 copies it)"
fi
