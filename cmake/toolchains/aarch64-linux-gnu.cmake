# 64-bit ARM from a PC: apt-get install g++-aarch64-linux-gnu qemu-user-static. -DMOTE_QEMU_CPU=cortex-a72 picks the
# processor that tests run on under qemu.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(MOTE_QEMU_CPU "max" CACHE STRING "Processor for qemu-aarch64-static -cpu")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static;-cpu;${MOTE_QEMU_CPU};-L;/usr/aarch64-linux-gnu)
