#!/usr/bin/env bash
# The TVM package: virtual environments with a stock TVM, and the wheel of adapters/tvm.
#
#   scripts/tvm.sh venv VERSION    prints the Python of an environment with that apache-tvm, which
#                                  it makes in .deps where there is none
#   scripts/tvm.sh wheel TYPE      builds the wheel into build/wheel, with CMake's build TYPE
#   scripts/tvm.sh install PYTHON  installs the wheel that was built last into an environment
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
deps=$root/.deps
wheels=$root/build/wheel
# Built against the oldest that is supported, so that one wheel serves all.
oldest=0.25.0.post1

# The apache-tvm-ffi that a release runs with: 0.25 lacks a symbol with those after 0.1.12.
ffi_for() {
    case $1 in
    0.25.*) echo 0.1.12 ;;
    *) echo 0.1.15.post2 ;;
    esac
}

venv() {
    local version=$1 at=$deps/tvm-$1
    if [ ! -e "$at/ready" ]; then
        rm -rf "$at"
        python3 -m venv "$at"
        "$at/bin/pip" -q --disable-pip-version-check install "apache-tvm==$version" \
            "apache-tvm-ffi==$(ffi_for "$version")" numpy pytest pytest-xdist cloudpickle psutil \
            tornado "scikit-build-core==1.1.2" "ruff==0.17.6" >&2
        touch "$at/ready"
    fi
    echo "$at/bin/python"
}

wheel() {
    local python
    python=$(venv "$oldest")
    rm -rf "$wheels"
    "$python" -m pip -q --disable-pip-version-check wheel --no-build-isolation --no-deps \
        -w "$wheels" "--config-settings=cmake.build-type=$1" "$root/adapters/tvm"
}

case ${1:-} in
venv) venv "$2" ;;
wheel) wheel "$2" ;;
install) "$2" -m pip -q --disable-pip-version-check install --no-deps --force-reinstall "$wheels"/*.whl >&2 ;;
*) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
