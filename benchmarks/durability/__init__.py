"""What it costs that nothing is lost: an append, per store and mode, beside a bare synced write."""
