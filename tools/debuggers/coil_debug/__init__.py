"""What the debuggers' commands of coil share. coil_gdb.py and coil_lldb.py are the front ends."""
