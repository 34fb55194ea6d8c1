"""Is this HLO right? Shape inference and checks."""
