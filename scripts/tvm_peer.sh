#!/usr/bin/env bash
# TVM's own Vulkan runtime, which the official wheels come without, to be measured beside ours.
#
#   scripts/tvm_peer.sh SOURCE PYTHON  builds it from TVM's sources, of the release that PYTHON has
#                                      installed (apache-tvm 0.27), and prints where it is
set -euo pipefail
[ $# -eq 2 ] || { sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2; }
source=$1
python=$2
out=$(cd "$(dirname "$0")/.." && pwd)/build/tvm_peer
folder_of() {
    "$python" -c "import importlib.util as u; print(u.find_spec('$1').submodule_search_locations[0])"
}
tvm=$(folder_of tvm)
ffi=$(folder_of tvm_ffi)
mkdir -p "$out"
g++ -std=c++20 -O2 -DNDEBUG -fPIC -shared -DTVM_RUNTIME_EXPORTS \
    -I"$tvm/include" -I"$ffi/include" -I"$source/include" -I"$source/src" \
    "$source"/src/backend/vulkan/runtime/*.cc -o "$out/libtvm_runtime_vulkan.so" \
    -L"$tvm/lib" -ltvm_runtime -L"$ffi/lib" -ltvm_ffi -lvulkan
echo "$out/libtvm_runtime_vulkan.so"
