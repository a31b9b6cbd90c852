"""What each attention head is for: scores of its pattern beside chance, copying, composition."""
