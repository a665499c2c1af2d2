#!/usr/bin/env bash
# arrows.sh must accept a good tree and name each fault of a bad one.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d) && trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{core,quant,kernels,models/chat,tools/developer,include}
echo '#include "core/b.h"' >"$tree/core/a.cpp"
echo '#include "kernels/k.h"' >"$tree/models/chat/m.cpp"
echo '#include <xsimd/xsimd.hpp>' >"$tree/kernels/simd.h"
echo '#include "models/forward.h"' >"$tree/tools/developer/d.cpp"
bash "$here/arrows.sh" "$tree" || { echo "a good tree was refused"; exit 1; }
missed=0
bad() { # FILE LINE
  echo "$2" >"$tree/$1"
  if bash "$here/arrows.sh" "$tree" | grep -qF "$1:1:"; then :; else echo "not found: $1: $2"; missed=1; fi
  rm "$tree/$1"
}
bad core/x.h '#include "quant/quant.h"'
bad core/x.cpp '#  include "models/spec.h"'
bad quant/x.cpp '#include "kernels/kernels.h"'
bad kernels/x.cpp '#include "models/spec.h"'
bad models/chat/x.cpp '#include "tools/options.h"'
bad tools/x.cpp '#include "core/gguf.h"'
bad include/x.h '#include "core/gguf.h"'
bad kernels/x.cpp '#include <immintrin.h>'
bad models/x.cpp '#include <xsimd/xsimd.hpp>'
bad kernels/x.h '#include <arm_neon.h>'
bad core/x.cpp '#include <cpuinfo.h>'
bad models/x.cpp '#include <vector>'
bad kernels/x.cpp '#include <algorithm>'
exit $missed
