#!/usr/bin/env bash
# check_package.sh BUILD WORK CMAKE VERSION: installs the package, moves it to another place, and
# builds and runs the consumer against it through CMake and through pkg-config.
set -euo pipefail
build=$1 work=$2 cmake=$3 version=$4
here=$(cd "$(dirname "$0")" && pwd)

rm -rf "$work"
mkdir -p "$work"
"$cmake" --install "$build" --prefix "$work/staged" >"$work/install.log"
mv "$work/staged" "$work/prefix"
library_dir=$(dirname "$(find "$work/prefix" -name 'libdlhal.so')")
for link in libdlhal.so "libdlhal.so.${version%%.*}"; do
    [ "$(readlink -f "$library_dir/$link")" = "$library_dir/libdlhal.so.$version" ]
done

# Sees whether a program says the version that was installed.
check() {
    local said
    said=$("$@")
    echo "$1: $said"
    [ "$said" = "dlhal $version" ]
}

"$cmake" -S "$here" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/configure.log"
"$cmake" --build "$work/build" >"$work/build.log"
check "$work/build/consumer_shared"
check "$work/build/consumer_static"

export PKG_CONFIG_PATH=$library_dir/pkgconfig
[ "$(pkg-config --modversion dlhal)" = "$version" ]
# shellcheck disable=SC2046 # flags are words
cc "$here/main.c" -o "$work/by_pkg_config" $(pkg-config --cflags --libs dlhal)
LD_LIBRARY_PATH=$library_dir:${LD_LIBRARY_PATH:-} check "$work/by_pkg_config"
# shellcheck disable=SC2046
cc "$here/main.c" -o "$work/by_pkg_config_static" $(pkg-config --cflags dlhal) \
    "$library_dir/libdlhal.a" $(pkg-config --static --libs-only-l dlhal | sed 's/-ldlhal//')
check "$work/by_pkg_config_static"
