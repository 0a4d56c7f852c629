"""memci inside another framework: one file each, all on `conversations`; none of them knows another one."""
