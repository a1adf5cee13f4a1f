"""What every file that lrm writes has in common, and how places are shown."""
