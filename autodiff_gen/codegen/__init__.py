"""The C files of a program: functions, tables, the trainer struct and its templates."""
