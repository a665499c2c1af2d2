#!/usr/bin/env bash
# Looks into object files.
#   symbols.sh kernels ISA NM OBJDUMP OBJECT...   no weak symbol (the linker could keep the copy with the wrong
#       instructions), everything that is defined carries the instruction set's namespace, and its instructions are there
#   symbols.sh library NM LIBRARY                 the library itself never prints, exits, throws, reads the environment
set -u
kernels() {
  local isa=$1 nm=$2 objdump=$3 faults=0 weak stray wanted
  shift 3
  weak=$("$nm" -A --defined-only "$@" | grep -E ' [WwVvu] ')
  [ -z "$weak" ] || { echo "weak symbols:"; echo "$weak"; faults=1; }
  stray=$("$nm" -A --defined-only --extern-only "$@" | grep -E ' [TDBR] ' | grep -v "${#isa}${isa}")
  [ -z "$stray" ] || { echo "outside namespace mote::$isa:"; echo "$stray"; faults=1; }
  case $isa in
    neon_dot) wanted=sdot ;;
    neon_i8mm) wanted=smmla ;;
    avx512vnni | avxvnni) wanted=vpdpbusds? ;;
    avx2) wanted=vpmaddubsw ;;
    sse2) wanted=pmaddwd ;;
    *) wanted= ;;
  esac
  if [ -n "$wanted" ] && ! "$objdump" -d "$@" | grep -qwE "$wanted"; then
    echo "no $wanted instruction in $isa"
    faults=1
  fi
  [ $faults = 0 ] && echo "$# objects of $isa checked"
  exit $faults
}
library() {
  local nm=$1 file=$2 found
  found=$("$nm" -A --undefined-only "$file" | grep -wE \
    'abort|exit|_exit|quick_exit|raise|printf|puts|putchar|perror|vprintf|fprintf|vfprintf|fputs|fwrite|stdout|stderr|stdin|__printf_chk|__fprintf_chk|__vfprintf_chk|setlocale|signal|sigaction|getenv|secure_getenv|__cxa_throw|__cxa_begin_catch|__cxa_guard_acquire|_Unwind_Resume|_ZSt[0-9]+__throw_[a-z_]+PKc|_Znwm|_Znam')
  [ -z "$found" ] || { echo "the library must not use:"; echo "$found"; exit 1; }
  found=$("$nm" -A --undefined-only "$file" | grep -E ' (_ZS[tabios]|_ZNS[tabios]|_ZNKS[tabios]|_Zd[la]|_Zn[wa]|__cxa|__gxx|_ZTV)')
  [ -z "$found" ] || { echo "needs the C++ run-time library:"; echo "$found"; exit 1; }
  # Sanitizers add their own.
  echo "library checked"
}
"$@"
