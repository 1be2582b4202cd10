# SPDX-License-Identifier: Apache-2.0
"""`python -m headrace` is the command."""

from headrace.cli import program

if __name__ == "__main__":
    program()
