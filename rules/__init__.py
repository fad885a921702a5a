"""The rules: one file each. See CONTRIBUTING.md for how to add one."""
