#!/usr/bin/env bash
# Each thread that the server, an agent or a worker starts, and each job of libuv's pool, begins with signal_stack_open: without it
# a stack overflow leaves no crash report. Commands that start no such process (src/tools/load, src/tools/lab) have no reports.
source "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip "python3 is not installed"
python3 - <<'END' || exit 1
import pathlib, re, sys
missing, seen = [], 0
for path in sorted(pathlib.Path("src").rglob("*.c")):
    if path.parts[1:3] in (("tools", "load"), ("tools", "lab")): continue
    text = path.read_text()
    names = set(re.findall(r"pthread_create\([^,]+,[^,]+, (\w+),", text))
    names |= set(re.findall(r"uv_thread_create\([^,]+, (\w+),", text))
    names |= set(re.findall(r"^(?:static )?void (\w+)\(uv_work_t \*\w+\)\n\{", text, re.M))
    if re.search(r"(pthread|uv_thread)_create\(|uv_queue_work\(", text) and not names:
        missing.append(f"{path}: which function does its thread run?")
    for name in names:
        seen += 1
        if not re.search(r"^(?:static )?void \*?%s\([^)]*\)\n\{\n    signal_stack_open\(\);" % name, text, re.M):
            missing.append(f"{path}: {name} does not begin with signal_stack_open()")
print(*missing, sep="\n")
sys.exit(bool(missing) or seen < 15)
END
