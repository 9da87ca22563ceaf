#!/usr/bin/env bash
# The inner loops of the products, read back from the objects: accumulators that do not fit into registers pass through
# the stack, every result stays right, and only the speed is gone. Of Q8_0, Q4_0 and our own types, and of all that
# goes by tiles (AMX), no vector may touch the stack there; of the other types at most six instructions in a hundred.
set -u
cd "$(dirname "$0")/../.."
build=$(dirname "${SHOAL_BIN:-$PWD/build/shoal}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
skip() { echo "$*"; exit 77; }
command -v python3 >/dev/null || skip "python3 reads what objdump prints"

cat >"$work/spills.py" <<'END'
import re, sys
name, product, least = sys.argv[1], sys.argv[2], int(sys.argv[3])
functions, now = {}, None
for line in sys.stdin:
    if m := re.match(r'[0-9a-f]+ <(.*)>:', line):
        now = functions.setdefault(m[1], [])
    elif (m := re.match(r'\s*([0-9a-f]+):\s+(.*)', line)) and now is not None:
        now.append((int(m[1], 16), m[2]))

def loops(code):
    """Innermost: from the target of a jump back to the jump, with no other such within."""
    spans = set()
    for at, text in code:
        m = re.match(r'(?:j\w+|b|b\.\w+|cbn?z\s+\w+,|tbn?z\s+\w+, #\d+,)\s+([0-9a-f]+)', text)
        if m and code[0][0] <= int(m[1], 16) <= at:
            spans.add((int(m[1], 16), at))
    return [s for s in spans if not any(o != s and s[0] <= o[0] and o[1] <= s[1] for o in spans)]

vector, stack = re.compile(r'%[xyz]mm\d|\b[qdsv]\d+\b'), re.compile(r'\(%[re][sb]p[,)]|\[(sp|x29)\b')
n, bad = 0, []
for function, code in functions.items():
    for first, last in loops(code):
        body = [text for at, text in code if first <= at <= last]
        if not any(re.match(product, text) for text in body):
            continue
        n += 1
        spills = sum(1 for text in body if stack.search(text) and vector.search(text))
        strict = 'amx' in name or re.search(r'q8_0|q4_0|_s[84]_', function)
        if spills > (0 if strict else 0.06 * len(body)):
            bad.append(f'{function}: {spills} of {len(body)} instructions move vectors to or from the stack')
if n < least:
    sys.exit(f'FAILED: only {n} loops of {name} found: what should be read has changed its name or its instructions')
if bad:
    sys.exit('FAILED: ' + name + '\n' + '\n'.join(bad))
print(f'{n} loops of {name}')
END

said=
# look NAME OBJDUMP OBJECT PRODUCT LEAST: at least so many loops that contain the product
look() {
    "$2" -s -j .comment "$3" | grep -q GCC || { echo "not made by gcc: $1"; return 0; }
    said+="${said:+, }$("$2" -d --no-show-raw-insn "$3" | python3 "$work/spills.py" "$1" "$4" "$5" 2>"$work/err")" ||
        { cat "$work/err"; exit 1; }
}

if [ "$(uname -m)" = x86_64 ] && command -v objdump >/dev/null; then
    for row in "avx512vnni vpdpbusd 40" "avx512amx tdpb 16"; do
        read -r isa product least <<<"$row"
        object=$build/CMakeFiles/shoal_compute.dir/src/engine/compute/x86/$isa.c.o
        [ -f "$object" ] || skip "no objects beside $build/shoal"
        look "$isa" objdump "$object" "$product" "$least"
    done
else
    echo "SKIP avx512vnni, avx512amx: no objdump of this machine's"
fi

# The options of AArch64's kernels are cmake's (modules.cmake); the objects of build/aarch64 need not be there.
cross=aarch64-linux-gnu
if command -v $cross-gcc >/dev/null && command -v $cross-objdump >/dev/null; then
    for row in "neondot +dotprod sdot 40" "neoni8mm +dotprod+i8mm s(dot|mmla) 40"; do
        read -r isa features product least <<<"$row"
        $cross-gcc -std=c11 -O2 -fPIC -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE -ffp-contract=off -fno-math-errno \
            -fno-schedule-insns -march=armv8.2-a$features -I"$build/inc/compute" -I"$build/inc/base" -Iinclude \
            -c "src/engine/compute/arm/$isa.c" -o "$work/$isa.o" || exit 1
        look "$isa" $cross-objdump "$work/$isa.o" "$product" "$least"
    done
else
    echo "SKIP neondot, neoni8mm: no $cross-gcc and objdump"
fi
[ -n "$said" ] || skip "no objdump and no cross compiler: no loop was read"
echo "no spills: $said"
