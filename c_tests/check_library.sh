#!/usr/bin/env bash
# check_library.sh LIBRARY SONAME EXPORTS: what the shared library is to its loader.
# With BLESS=1 the list of exports is written anew instead of compared.
set -euo pipefail
library=$1 soname=$2 exports=$3
failed=0
complain() { echo "CHECK FAILED: $*"; failed=1; }

dynamic=$(readelf --dynamic --wide "$library")
while read -r needed; do
    case $needed in
    libc.so.6 | libm.so.6 | libgcc_s.so.1 | ld-linux-x86-64.so.2 | ld-linux-aarch64.so.1) ;;
    *) complain "needs $needed at load time" ;;
    esac
done < <(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' <<<"$dynamic")
grep -q "(SONAME).*\[$soname\]" <<<"$dynamic" || complain "soname is not $soname"
grep -q 'NODELETE' <<<"$dynamic" || complain "can be unloaded (no NODELETE flag)"
! grep -qE '\((RPATH|RUNPATH|TEXTREL)\)' <<<"$dynamic" || complain "has a run path or text relocations"
readelf --program-headers --wide "$library" | grep -E 'GNU_STACK.* RWE' && complain "executable stack"

now=$(nm --dynamic --defined-only "$library" | awk '{ print $NF }' | LC_ALL=C sort)
others=$(grep -v '^dlhal_' <<<"$now" || true)
[ -z "$others" ] || complain "exports more than dlhal_ symbols: $others"
if [ "${BLESS:-0}" = 1 ]; then
    printf '%s\n' "$now" >"$exports"
    echo "wrote $exports"
fi
diff -u "$exports" <(printf '%s\n' "$now") || complain "exports differ from $exports; BLESS=1 renews it"
exit $failed
