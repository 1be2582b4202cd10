# SPDX-License-Identifier: Apache-2.0
"""Learning as pure mathematics: one file an algorithm. No environments, processes or files."""
