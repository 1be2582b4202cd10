# SPDX-License-Identifier: Apache-2.0
"""Ways of turning an environment and a policy into experience: one file a rung."""
