#!/usr/bin/env bash
# Checks who includes whom: models -> kernels -> quant -> core, the tool only mote.h, tools/developer anything.
# Also: SIMD headers in kernels/simd*.h alone, cpuinfo in core/cpu.cpp alone, no containers in the library.
# Usage: arrows.sh SOURCE_DIR
set -u
cd "${1:?source folder}" || exit 2
faults=0

# files FOLDER: its sources, deeper ones too.
files() { find "$1" -type f \( -name '*.h' -o -name '*.cpp' -o -name '*.c' -o -name '*.inc' \) 2>/dev/null | sort; }

# forbid WHAT FILES PATTERN: no include in FILES may match PATTERN (an extended regular expression on the name with its
# quotes or brackets).
forbid() {
  local what=$1 list=$2 pattern=$3 found
  [ -n "$list" ] || return 0
  found=$(grep -nHE '^[[:space:]]*#[[:space:]]*include' $list | grep -E "include[[:space:]]*($pattern)")
  [ -z "$found" ] || { printf '%s:\n%s\n' "$what" "$found"; faults=1; }
}
except() { grep -vE "$1" || true; }

forbid "core includes only core and mote.h" "$(files core)" '"(quant|kernels|models|tools|tests)/'
forbid "quant includes only quant and core" "$(files quant)" '"(kernels|models|tools|tests)/'
forbid "kernels includes only kernels, quant and core" "$(files kernels)" '"(models|tools|tests)/'
forbid "models includes only models, kernels, quant and core" "$(files models)" '"(tools|tests)/'
forbid "mote.h includes only the C library" "$(files include)" '"'
forbid "the tool's commands include only mote.h and the tool" \
  "$(files tools | except '^tools/developer/')" '"(core|quant|kernels|models|tests)/'
forbid "nobody includes tests" "$(files tools)" '"tests/'
library=$(files core; files quant; files kernels; files models)
forbid "SIMD headers belong in kernels/simd.h" "$(echo "$library" | except '^kernels/simd[a-z0-9_]*\.h$')" \
  '<(xsimd/.*|[a-z]*mmintrin\.h|x86intrin\.h|arm_neon\.h|arm_acle\.h)'
forbid "cpuinfo belongs in core/cpu.cpp" "$(echo "$library" | except '^core/cpu\.cpp$')" '["<]cpuinfo\.h'
forbid "the library uses no containers, strings, streams or exceptions" "$library" \
  '<(vector|string|map|set|unordered_map|unordered_set|deque|list|memory|functional|iostream|sstream|fstream|ostream|istream|stdexcept|regex|thread|mutex|future|locale|filesystem)>'
forbid "kernels use no standard algorithms" "$(files kernels)" '<(algorithm|numeric|cmath|utility|array)>'
[ $faults = 0 ] && echo "$(echo "$library" | wc -l) library files checked"
exit $faults
