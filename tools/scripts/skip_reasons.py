#!/usr/bin/env python3
"""Prints from ctest's LastTest.log which tests were skipped, and why, grouped by reason."""
import re
import sys


def reason_of(text):
    """GoogleTest prints 'file:line: Skipped', then the message; scripts print 'skipped: message'."""
    found = re.search(r"^\S+:\d+: Skipped\n((?:.+\n)*?)(?=\n|\[)", text, re.M)
    if found:
        return " ".join(found.group(1).split()) or "no reason given"
    found = re.search(r"^skipped: (.*)$", text, re.M)
    return found.group(1) if found else None


def main():
    try:
        with open(sys.argv[1], encoding="utf-8", errors="replace") as file:
            blocks = re.split(r"^-{58}\n(?=\d+/\d+ Test)|^\d+/\d+ Testing: ", file.read(), flags=re.M)
    except OSError:
        return
    reasons = {}
    for block in blocks[1:]:
        name = block.split("\n", 1)[0].strip()
        reason = reason_of(block)
        if reason and ("SKIPPED" in block or "skipped: " in block):
            reasons.setdefault(reason, []).append(name)
    for reason, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
        print(f"   skipped {len(names)}: {reason} ({names[0]}{' …' if len(names) > 1 else ''})")


if __name__ == "__main__":
    main()
