#!/bin/sh
# Run by `meson install`: the tree that is shown as /opt/kraft inside, beside the program it is made of.
set -eu
tree="$MESON_INSTALL_DESTDIR_PREFIX/$1"
mkdir -p "$tree/bin"
ln -f "${tree%/*}/kraft-guest" "$tree/init"
ln -f "$tree/init" "$tree/bin/kraft"
