# Sourced by tools/demo, tools/check and .ci/run: messages, packages, building, models.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cache=${MOTE_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/mote}
models=${MOTE_MODELS_DIR:-$cache/models}
step_started=$SECONDS

say() { printf '\n== %s\n' "$*"; }
note() { printf '   %s\n' "$*"; }
die() { printf '\n%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

# Packages of Debian, Ubuntu and Raspberry Pi OS.
build_packages="g++ cmake make ninja-build pkg-config libxsimd-dev libutf8proc-dev nlohmann-json3-dev libcli11-dev"
optional_packages="libcpuinfo-dev ccache"
fetch_packages="ca-certificates python3 python3-pip"
test_packages="libgtest-dev libgmock-dev binutils"

installed() { [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null | cut -c1-2)" = ii ]; }
missing_of() { local name; for name in "$@"; do installed "$name" || printf '%s ' "$name"; done; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}
apt() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -y -qq -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 "$@" </dev/null
}

# need_packages NAME...: installs what is missing; says what to do where it may not.
need_packages() {
  local wanted
  if ! command -v dpkg-query >/dev/null; then
    note "not a Debian system: these must be there already: $*"
    return 0
  fi
  wanted=$(missing_of "$@")
  if [ -z "$wanted" ]; then
    note "all $# packages are installed"
    return 0
  fi
  note "installing $wanted"
  if [ "$(id -u)" != 0 ] && ! { command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; }; then
    die "not root, and sudo is not to be had. Run this first: apt-get install $wanted"
  fi
  as_root dpkg --configure -a >/dev/null || true # an interrupted installation
  apt update >/dev/null || note "apt-get update failed; trying with the package lists that are there"
  apt install --no-install-recommends $wanted >/dev/null || die "apt-get install $wanted failed"
}

# want_packages NAME...: the same for what is merely useful.
want_packages() {
  local name wanted=""
  command -v dpkg-query >/dev/null || return 0
  for name in $(missing_of "$@"); do
    if apt-cache show "$name" >/dev/null 2>&1; then wanted="$wanted $name"; else note "no package $name here: left out"; fi
  done
  [ -z "$wanted" ] || ( need_packages $wanted ) || note "going on without$wanted"
}

# As many compilers at once as there are processors, and one per GiB of memory.
jobs_here() {
  local cpus memory
  cpus=$(nproc 2>/dev/null || echo 1)
  memory=$(awk '/^MemTotal/ {print int($2 / 1000000)}' /proc/meminfo 2>/dev/null)
  [ "${memory:-1}" -ge 1 ] || memory=1
  [ "$cpus" -le "${memory:-1}" ] || cpus=$memory
  echo "$cpus"
}

# configure BUILD_DIR [OPTION...]: keeps the generator of an existing build folder; with ccache where it is.
configure() {
  export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root} CCACHE_NOHASHDIR=1 # the same code in another folder is a hit
  local dir=$1 generator=()
  shift
  if [ ! -f "$dir/CMakeCache.txt" ]; then
    rm -rf "$dir/CMakeFiles"
    command -v ninja >/dev/null && generator=(-G Ninja)
    if command -v ccache >/dev/null; then
      generator+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    fi
  fi
  cmake -S "$root" -B "$dir" "${generator[@]}" "$@" >"$dir.log" 2>&1 ||
    { cat "$dir.log" >&2; die "cmake failed in $dir"; }
  rm -f "$dir.log"
}

# fetch_models NAME...: into $models; see fetch_models.py for the names.
fetch_models() { python3 "$root/tools/scripts/fetch_models.py" --directory "$models" "$@"; }

# run_tests BUILD_DIR [CTEST_OPTION...]: shows failures as they come, why tests were skipped, and ctest's closing line.
# With test_inputs=none only what is in tests/data is read.
run_tests() {
  local dir=$1 status=0 progress=""
  shift
  [ ! -t 1 ] || progress=--progress
  if [ "${test_inputs:-all}" = none ]; then
    unset MOTE_SHARED_DIR MOTE_MODELS_DIR
  else
    export MOTE_MODELS_DIR=$models
    if [ -z "${MOTE_SHARED_DIR:-}" ] && [ -d "$root/../shared/goldens" ]; then
      MOTE_SHARED_DIR=$(cd "$root/../shared" && pwd)
    fi
    if [ -n "${MOTE_SHARED_DIR:-}" ]; then
      export MOTE_SHARED_DIR
    else
      unset MOTE_SHARED_DIR
      note "no goldens beside this folder (MOTE_SHARED_DIR): the comparisons over them are skipped"
    fi
  fi
  ctest --test-dir "$dir" --output-on-failure --no-tests=error $progress "$@" </dev/null || status=$?
  python3 "$root/tools/scripts/skip_reasons.py" "$dir/Testing/Temporary/LastTest.log"
  return $status
}
