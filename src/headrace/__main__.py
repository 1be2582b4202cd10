# SPDX-License-Identifier: Apache-2.0
"""`python -m headrace` is the command."""

import sys

from headrace.cli import main

if __name__ == "__main__":
    sys.exit(main())
