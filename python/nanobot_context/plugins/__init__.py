"""What a setting adds to nanobot: summaries of its sessions, and a store that gateways share."""
