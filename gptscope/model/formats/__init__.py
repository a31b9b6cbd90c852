"""Files of other programs, told in the words of Hugging Face: GGUF and llama2.c."""
