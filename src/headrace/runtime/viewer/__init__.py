# SPDX-License-Identifier: Apache-2.0
"""The visualisation process: a page on this machine that shows a run, while it goes on or after."""
