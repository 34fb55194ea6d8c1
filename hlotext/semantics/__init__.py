"""What XLA demands of an instruction and which shape it has: functions without text and places."""
