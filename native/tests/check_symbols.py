"""No function compiled for a newer processor may be taken by the linker for an older one.

An inline function or template that several object files define is a weak symbol, of which the
linker keeps any: if it was compiled for x86-64-v4, it runs on every machine. So whatever these
object files export must be in the namespace of their instruction set.

    check_symbols.py OBJECT...    (their paths name it: headrace_kernels_v4.dir/...)
"""

import re
import subprocess
import sys
from pathlib import Path

# A name that the linker may merge or others may call: defined (not U), and global, weak or unique.
SYMBOL = re.compile(r"^[0-9a-f]* +(?P<kind>[A-TV-Zuvw]) (?P<name>.*)$")


def leaks(object_file: Path) -> list[str]:
    """Names the object file defines outside the namespace of its instruction set."""
    isa = re.search(r"headrace_kernels_(\w+?)\.dir", str(object_file))
    if isa is None:
        sys.exit(f"{object_file} is not below a folder headrace_kernels_<instruction set>.dir")
    listing = subprocess.run(
        ["nm", "-C", "--defined-only", "--extern-only", str(object_file)],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    found = []
    for line in listing.splitlines():
        symbol = SYMBOL.match(line)
        if symbol and f"headrace::{isa[1]}::" not in symbol["name"]:
            found.append(f"{symbol['kind']} {symbol['name']}")
    return found


def main() -> None:
    """Exits with 1 and the names if there is any."""
    objects = [Path(argument) for argument in sys.argv[1:]]
    if not objects:
        sys.exit(__doc__)
    found = [f"{path}: {name}" for path in objects for name in leaks(path)]
    if found:
        sys.exit("compiled for one instruction set, named for all:\n" + "\n".join(found))
    print(f"{len(objects)} object files keep to their namespaces")


if __name__ == "__main__":
    main()
