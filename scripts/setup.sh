#!/usr/bin/env bash
# Makes this machine ready and writes .deps/env.sh, to be sourced before running anything.
#
#   scripts/setup.sh [demo|test]
#
# demo  what the library and the demo need: a C compiler, CMake, Python, the Vulkan loader, a driver
# test  also what the tests need: Vulkan headers, validation layers, shader tools, valgrind
#
# As root, missing packages are installed with apt-get; otherwise the command to run is printed.
#
# The driver: a GPU with a Vulkan driver is used as it is. Where there is none, Mesa's software
# driver (lavapipe) is, and its version matters: Debian 12's own 22.3.6 computes workgroup
# reductions wrongly. 25.0.7 is the oldest version whose results were checked, so a system
# lavapipe is used from that version on; below it, Mesa is taken from this release's backports on
# the package mirror that the machine uses already, and unpacked into .deps/mesa. Nothing of that
# touches the system. A driver chosen by the caller's own VK_DRIVER_FILES is left alone.
#
# The tests also compile the header against DLPack's own header, old and new: Debian's 0.6 from the
# same mirror and, where Python's pip is there, the 1.x that the apache-tvm-ffi wheel carries.
set -euo pipefail

level=${1:-test}
root=$(cd "$(dirname "$0")/.." && pwd)
deps=$root/.deps
mesa=$deps/mesa
oldest_right_mesa=25.0.7
case $level in demo | test) ;; *) echo "usage: scripts/setup.sh [demo|test]" >&2; exit 2 ;; esac

say() { echo "setup: $*" >&2; }
die() { say "$@"; exit 1; }

packages=(gcc g++ make cmake pkg-config libvulkan1 vulkan-tools)
python3 -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3 python3-venv)
[ "$level" = demo ] || packages+=(binutils file libvulkan-dev vulkan-validationlayers glslc
    spirv-tools valgrind clang-format)

install_packages() {
    local missing=() p
    for p in "${packages[@]}"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    [ "$(id -u)" = 0 ] || die "packages are missing; run:
    sudo apt-get update && sudo apt-get install --no-install-recommends ${missing[*]}"
    say "installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update </dev/null
    apt-get -qq install -y --no-install-recommends "${missing[@]}" </dev/null >"$deps/apt-install.log" 2>&1 ||
        { tail -n 20 "$deps/apt-install.log" >&2; die "apt-get could not install ${missing[*]}"; }
}

# One line per device: type and driver, e.g. "PHYSICAL_DEVICE_TYPE_CPU Mesa 25.0.7-2 (LLVM 15.0.6)".
list_devices() {
    DISPLAY='' timeout 60 vulkaninfo --summary 2>/dev/null | awk '
        /^[ \t]*deviceType/ { type = $3 }
        /^[ \t]*driverInfo/ { sub(/^[^=]*= */, ""); info = $0 }
        /^[ \t]*conformanceVersion/ { print type, info; type = info = "" }' || true
}

mesa_is_right() { dpkg --compare-versions "${1:-0}" ge "$oldest_right_mesa"; }

# The machine's own package sources for this release, one file in $1 per source, with the
# release's backports in place of its suites and every other option (keyring, mirror) as it was.
write_backports_sources() {
    local out=$1 codename=$2 file
    shopt -s nullglob
    for file in /etc/apt/sources.list.d/*.sources; do
        awk -v RS= -v codename="$codename" -v out="$out/$(basename "$file" .sources)" '
            { field = ""; keep = ""; suites = components = types = ""; enabled = 1
              n = split($0, lines, "\n")
              for (i = 1; i <= n; i++) {
                  if (lines[i] ~ /^#/) continue
                  if (lines[i] ~ /^[^ \t]/) field = tolower(substr(lines[i], 1, index(lines[i], ":") - 1))
                  value = lines[i]; sub(/^[^:]*:/, "", value)
                  if (field == "suites") suites = suites " " value
                  else if (field == "components") components = components " " value
                  else if (field == "types") types = types " " value
                  else if (field == "enabled") enabled = value !~ /no|false|0/
                  else keep = keep lines[i] "\n"
              }
              if (enabled && (types " ") ~ / deb / && (components " ") ~ / main / &&
                  (suites " ") ~ ("[ \t](" codename "|stable|oldstable)[ \t]"))
                  printf "Types: deb\nSuites: %s %s-backports\nComponents: main\n%s", \
                      codename, codename, keep > (out "-" NR ".sources")
            }' "$file"
    done
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ -f "$file" ] || continue
        awk -v codename="$codename" -v out="$out/$(basename "$file" .list)" '
            $1 == "deb" {
                line = $0; sub(/#.*/, "", line)
                options = ""
                if (match(line, /\[[^]]*\]/)) { options = substr(line, RSTART, RLENGTH) " "; sub(/\[[^]]*\]/, "", line) }
                n = split(line, f, " ")
                if (f[3] !~ ("^(" codename "|stable|oldstable)$")) next
                main = 0; for (i = 4; i <= n; i++) if (f[i] == "main") main = 1
                if (!main) next
                printf "deb %s%s %s main\ndeb %s%s %s-backports main\n", options, f[2], codename, \
                    options, f[2], codename > (out "-" NR ".list")
            }' "$file"
    done
}

# apt over a state of its own: reads what is installed, changes nothing outside .deps.
apt_options=()
use_private_apt() {
    [ ${#apt_options[@]} = 0 ] || return 0
    local codename source
    # shellcheck source=/dev/null
    codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    [ -n "$codename" ] && command -v apt-get >/dev/null || return 1
    rm -rf "$deps/apt"
    mkdir -p "$deps/apt/lists/partial" "$deps/apt/cache/archives/partial" "$deps/apt/sources"
    write_backports_sources "$deps/apt/sources" "$codename"
    for source in "$deps"/apt/sources/*; do
        apt_options=(-q -o "Dir::State::Lists=$deps/apt/lists" -o "Dir::Cache=$deps/apt/cache"
            -o "Dir::Etc::SourceList=$source" -o Dir::Etc::SourceParts=/dev/null
            -o APT::Sandbox::User=root -o "APT::Default-Release=$codename-backports")
        apt-get "${apt_options[@]}" update </dev/null >"$deps/apt/update.log" 2>&1 || continue
        [ "$(offered_mesa)" = "(none)" ] || return 0
    done
    apt_options=()
    return 1
}
offered_mesa() { apt-cache "${apt_options[@]}" policy mesa-vulkan-drivers | awk '/Candidate:/ { print $2 }'; }

# Downloads the packages named into .deps/apt/debs and unpacks their files into $1.
unpack() {
    local into=$1 deb
    shift
    rm -rf "$deps/apt/debs" && mkdir -p "$deps/apt/debs" "$into"
    (cd "$deps/apt/debs" && apt-get "${apt_options[@]}" download "$@" </dev/null >&2)
    for deb in "$deps"/apt/debs/*.deb; do dpkg -x "$deb" "$into"; done
    rm -rf "$deps/apt/debs"
}

missing_libraries() { LD_LIBRARY_PATH=$mesa/lib ldd "$1" 2>&1 | grep 'not found' || true; }

# Prints the packages that mesa-vulkan-drivers depends on, except the C and C++ runtimes: a
# second copy of those in one process would not be the one that the rest of it uses.
mesa_dependencies() {
    apt-cache "${apt_options[@]}" depends --recurse --no-recommends --no-suggests --no-conflicts \
        --no-breaks --no-replaces --no-enhances mesa-vulkan-drivers |
        grep -E '^[a-z0-9]' | sort -u |
        grep -vxE 'mesa-vulkan-drivers|libc6|libgcc-s1|libstdc\+\+6|gcc-[0-9]+-base|libcrypt1|.*:.*'
}

# Unpacks the release's newer Mesa and what it needs that is not here; sets driver.
fetch_mesa() {
    local version wanted p
    { use_private_apt && version=$(offered_mesa) && mesa_is_right "$version"; } ||
        die "this machine has no Vulkan driver that is known to compute correctly, and its package
    sources offer no backports with one: install a GPU's Vulkan driver or Mesa's lavapipe >=
    $oldest_right_mesa, or name a driver file in VK_DRIVER_FILES"
    rm -rf "$mesa"
    say "unpacking Mesa $version into .deps/mesa"
    unpack "$mesa" mesa-vulkan-drivers
    driver=$(find "$mesa" -name 'libvulkan_lvp.so' -print -quit)
    mkdir -p "$mesa/lib"
    # First the libraries that are not installed; then, should installed ones be too old, all.
    for wanted in missing all; do
        [ -n "$(missing_libraries "$driver")" ] || break
        local need=()
        for p in $(mesa_dependencies); do
            [ $wanted = missing ] &&
                [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] && continue
            need+=("$p")
        done
        [ ${#need[@]} -gt 0 ] || continue
        unpack "$mesa/more" "${need[@]}"
        find "$mesa/more" -name '*.so*' \( -type f -o -type l \) -exec cp -a -t "$mesa/lib" {} +
        rm -rf "$mesa/more"
    done
    [ -z "$(missing_libraries "$driver")" ] || die "the software driver lacks: $(missing_libraries "$driver")"
}

# Leaves include paths with DLPack's header in .deps/dlpack-0.6 and .deps/dlpack-1.
fetch_dlpack() {
    if [ ! -e "$deps/dlpack-0.6" ] && use_private_apt; then
        unpack "$deps/dlpack.part" libdlpack-dev && mv "$deps/dlpack.part/usr/include" "$deps/dlpack-0.6"
        rm -rf "$deps/dlpack.part"
    fi
    if [ ! -e "$deps/dlpack-1" ] && python3 -m pip --version >/dev/null 2>&1; then
        mkdir -p "$deps/dlpack.part"
        if python3 -m pip -q download --no-deps -d "$deps/dlpack.part" apache-tvm-ffi >&2; then
            python3 - "$deps" <<'PYTHON'
import glob, os, sys, zipfile
deps = sys.argv[1]
wheel = zipfile.ZipFile(glob.glob(deps + "/dlpack.part/*.whl")[0])
header = next(name for name in wheel.namelist() if name.endswith("/dlpack/dlpack.h"))
os.makedirs(deps + "/dlpack-1/dlpack")
open(deps + "/dlpack-1/dlpack/dlpack.h", "wb").write(wheel.read(header))
PYTHON
        else
            say "no wheel with DLPack 1.x: the header is not tested against it"
        fi
        rm -rf "$deps/dlpack.part"
    fi
}

system_lavapipe() {
    find /usr/lib /usr/local/lib /usr/lib64 -name libvulkan_lvp.so -print -quit 2>/dev/null || true
}

# Two driver files, of two copies of one library: side by side they are two devices.
write_driver_files() {
    local driver=$1
    mkdir -p "$mesa"
    cp -fL "$driver" "$mesa/libvulkan_lvp2.so"
    printf '{"file_format_version":"1.0.0","ICD":{"library_path":"%s","api_version":"1.4.305"}}\n' \
        "$driver" >"$mesa/icd.json"
    printf '{"file_format_version":"1.0.0","ICD":{"library_path":"%s","api_version":"1.4.305"}}\n' \
        "$mesa/libvulkan_lvp2.so" >"$mesa/icd2.json"
}

write_env() {
    local gpu=$1
    {
        echo "# Written by scripts/setup.sh."
        echo "export DLHAL_TEST_SOFTWARE_DRIVER='$mesa/icd.json'"
        echo "export DLHAL_TEST_SOFTWARE_DRIVER_2='$mesa/icd2.json'"
        echo "export VK_ADD_LAYER_PATH='$root/build/c_tests/fault_layer'\${VK_ADD_LAYER_PATH:+:\$VK_ADD_LAYER_PATH}"
        [ "$gpu" = yes ] || echo "export VK_DRIVER_FILES=\"\${VK_DRIVER_FILES:-$mesa/icd.json}\""
        [ -z "$(ls -A "$mesa/lib" 2>/dev/null)" ] ||
            echo "export LD_LIBRARY_PATH='$mesa/lib'\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
    } >"$deps/env.sh"
}

mkdir -p "$deps"
install_packages
command -v cargo >/dev/null || die "cargo is missing: install Rust 1.95 or newer (rustup.rs)"

[ -z "${VK_DRIVER_FILES:-}" ] || say "VK_DRIVER_FILES is set and stays: $VK_DRIVER_FILES"
devices=$(unset VK_DRIVER_FILES VK_ICD_FILENAMES; list_devices)
gpu=no
grep -qvE 'TYPE_CPU|^$' <<<"$devices" && gpu=yes
# The driver that was set up is taken again while its files are there.
ready() { [ -s "$mesa/icd.json" ] && [ -f "$(sed 's/.*"library_path":"\([^"]*\)".*/\1/' "$mesa/icd.json")" ] &&
    [ -f "$mesa/libvulkan_lvp2.so" ] && [ -s "$mesa/icd2.json" ]; }
if ! ready && { [ $gpu = no ] || [ "$level" = test ]; }; then
    version=$(sed -n 's/.*TYPE_CPU Mesa \([0-9.]*\).*/\1/p' <<<"$devices" | head -n 1)
    driver=$(system_lavapipe)
    { [ -n "$driver" ] && mesa_is_right "$version"; } || fetch_mesa
    write_driver_files "$driver"
fi
[ "$level" = demo ] || fetch_dlpack
rm -rf "$deps/apt"
write_env $gpu
