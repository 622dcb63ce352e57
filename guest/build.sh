#!/bin/sh
# Builds kraft-guest: build.sh OUTPUT VERSION SOURCE-ROOT COMPILER SOURCE...
# COMPILER is a command line ("musl-gcc", "zig cc -target aarch64-linux-musl"). musl's own folder has no kernel headers,
# and the system's must not be searched whole, so a folder with links to the three that are wanted is made beside the output.
set -eu
output=$1 version=$2 root=$3 compiler=$4
shift 4

layout=
kernel="$output.headers"
mkdir -p "$kernel"
case $compiler in
*musl-gcc*)
	# One mapping for code and constants: less for the kernel to set up at each start. zig's linker has no such option.
	layout=-Wl,-z,noseparate-code
	for name in linux asm-generic; do
		ln -sfn "/usr/include/$name" "$kernel/$name"
	done
	for asm in "/usr/include/$(uname -m)-linux-gnu/asm" /usr/include/asm; do
		if [ -d "$asm" ]; then
			ln -sfn "$asm" "$kernel/asm"
			break
		fi
	done
	;;
esac

# -Wno-sign-compare: clang sees it in musl's own CMSG_NXTHDR.
# shellcheck disable=SC2086 # the compiler is a command line, the layout may be nothing
$compiler -std=gnu17 -D_GNU_SOURCE -DKRAFT_VERSION="\"$version\"" -Os -static -s \
	-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wconversion \
	-Wno-sign-conversion -Wno-sign-compare -Werror \
	-fno-strict-overflow -fstack-protector-strong -ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables \
	-Wl,--gc-sections -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack $layout \
	-I"$root" -isystem "$kernel" -o "$output" "$@"
