"""Says which installed packages have known faults: pip-audit, told apart from a list that cannot be reached.

    python scripts/audit.py

The exit code is 1 where a fault is known, so that `make check` stops. A machine without network, or with a mirror that
has no such list, cannot know: the script says how many packages were looked up, and ends with 0.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence

COMMAND = ("-m", "pip_audit", "--local", "--skip-editable", "--progress-spinner", "off", "--format", "json")


def judged(dependencies: Sequence[Mapping[str, object]]) -> tuple[int, list[str]]:
    """Return the exit code and what to say about pip-audit's list of packages."""
    known = [one for one in dependencies if "skip_reason" not in one]
    said = [
        f"{one['name']} {one['version']}: {fault['id']}, mended in {', '.join(fault['fix_versions']) or 'no version'}"
        for one in known
        for fault in one["vulns"]
    ]
    rest = "" if len(known) == len(dependencies) else "; the others are not in the list that was reached"
    said.append(f"audit: {len(known)} of {len(dependencies)} packages looked up{rest}")
    return int(len(said) > 1), said


def main() -> int:
    """Ask pip-audit, print what it knows and return 1 if a fault is known."""
    asked = subprocess.run([sys.executable, *COMMAND], capture_output=True, text=True, check=False)  # noqa: S603 - ours
    try:
        dependencies = json.loads(asked.stdout)["dependencies"]
    except ValueError:
        reason = asked.stderr.strip().splitlines()[-1:] or ["no answer"]
        print(f"audit: the list of known faults cannot be reached, nothing was looked up ({reason[0][:200]})")
        return 0
    code, said = judged(dependencies)
    print("\n".join(said))
    return code


if __name__ == "__main__":
    sys.exit(main())
