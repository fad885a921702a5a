"""What is run both in the emulator and on a GPU, and how the outputs are held to each other."""
