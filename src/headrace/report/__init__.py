# SPDX-License-Identifier: Apache-2.0
"""What a rung is worth: side by side, against the machine, and for a whole training run."""
