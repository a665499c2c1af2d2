#!/usr/bin/env bash
# Installs a build into a folder of its own and uses it as others would. package.sh BUILD_DIR SHARED(0|1)
# Environment: CC, CFLAGS, CMAKE.
set -eu
build=$1 shared=$2 here=$(cd "$(dirname "$0")" && pwd)
cmake=${CMAKE:-cmake} cc=${CC:-cc} work=$build/package prefix=$build/package/prefix
rm -rf "$work" && mkdir -p "$work"
"$cmake" --install "$build" --prefix "$prefix" >"$work/install.log"

echo "--- CMake package"
"$cmake" -S "$here/consumer" -B "$work/consumer" -DCMAKE_PREFIX_PATH="$prefix" -DMOTE_SHARED="$shared" \
  -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="${CFLAGS:-}"
"$cmake" --build "$work/consumer"
"$work/consumer/consumer_static"
[ "$shared" = 0 ] || "$work/consumer/consumer_shared"

echo "--- pkg-config"
command -v pkg-config >/dev/null || { echo "skipped: pkg-config is not installed"; exit 77; }
libdir=$(dirname "$(find "$prefix" -name libmote.a)")
export PKG_CONFIG_PATH=$libdir/pkgconfig
flags="-std=c99 -pedantic-errors -Wall -Wextra -Werror ${CFLAGS:-}"
private=$(pkg-config --static --libs mote | sed "s#-lmote#$libdir/libmote.a#")
"$cc" $flags $(pkg-config --cflags mote) "$here/consumer/consumer.c" -o "$work/static" $private
"$work/static"
if [ "$shared" != 0 ]; then
  "$cc" $flags $(pkg-config --cflags mote) "$here/consumer/consumer.c" -o "$work/shared" $(pkg-config --libs mote)
  LD_LIBRARY_PATH=$libdir "$work/shared"
  echo "--- exported symbols"
  stray=$(nm -D --defined-only "$libdir/libmote.so" | awk '{print $NF}' | grep -v '^mote_' | grep -vE '^(_init|_fini|__bss_start|_edata|_end)$' || true)
  [ -z "$stray" ] || { echo "libmote.so exports more than its interface:"; echo "$stray"; exit 1; }
fi
mote=$prefix/bin/mote
if [ -x "$mote" ]; then "$mote" --version; fi
