"""The command line: ``python -m loranpac``, or ``loranpac``."""

import signal
import sys

from loranpac import _engine


def main() -> None:
    """Run the command line with the arguments of this process."""
    # The command handles interrupts and closed pipes itself.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    sys.exit(_engine.command(["loranpac", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
