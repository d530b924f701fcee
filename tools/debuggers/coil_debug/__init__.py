"""Shared by coil's commands for the debuggers. coil_gdb.py and coil_lldb.py are the front ends."""
