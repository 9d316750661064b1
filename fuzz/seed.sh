#!/bin/sh
# Fills corpus/ from the test fixtures: corpus/TARGET/NAME.
set -eu
cd "$(dirname "$0")"
data=../tests/data/modules
mkdir -p corpus/module_from_bytes corpus/spirv corpus/meta_file corpus/wgsl
for file in $(find "$data" -name '*.bin' -size -64k); do
    cp "$file" "corpus/module_from_bytes/$(echo "$file" | tr / _)"
done
cp "$data"/spirv/*.spv corpus/spirv/
for file in $(find "$data" -name '*.vulkan' -size -64k); do
    cat "${file%.vulkan}.tvm_meta.json" "$file" > "corpus/meta_file/$(basename "$file")"
done
cp ../tests/data/modules/wgsl/*.wgsl corpus/wgsl/
