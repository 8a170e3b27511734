"""Optional parts that a setting adds: session summaries, and a store that gateways share."""
